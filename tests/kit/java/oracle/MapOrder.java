import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

/** Puts each line's keys into a HashMap, or a coordinator's map; those with a minus out of it; and says its order. */
public final class MapOrder {
    private MapOrder() {
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Boolean> map = arguments[0].equals("timeline")
                    ? new TimelineHashMap<>(new SnapshotRegistry(new LogContext()), 0) : new HashMap<>();
            for (String token : line.split("\t")) {
                String key = URLDecoder.decode(token.substring(1), StandardCharsets.UTF_8);
                if (token.charAt(0) == '-') {
                    map.remove(key);
                } else {
                    map.put(key, true);
                }
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
