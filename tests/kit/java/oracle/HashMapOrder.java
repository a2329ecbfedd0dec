import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/** Puts each line's keys into a HashMap and says the order in which it iterates over them. */
public final class HashMapOrder {
    private HashMapOrder() {
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Boolean> map = new HashMap<>();
            for (String token : line.split("\t")) {
                map.put(URLDecoder.decode(token, StandardCharsets.UTF_8), true);
            }
            StringBuilder said = new StringBuilder();
            for (String key : map.keySet()) {
                said.append(said.length() == 0 ? "" : "\t").append(URLEncoder.encode(key, StandardCharsets.UTF_8));
            }
            out.println(said);
        }
        out.flush();
    }
}
