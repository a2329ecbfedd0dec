import java.io.PrintStream;
import java.util.HashMap;
import java.util.Map;
import java.util.Scanner;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * How each member of the kit talks with the test that started it: settings as arguments key=value, commands on standard
 * input, one a line, and what it says of itself on standard output, one JSON object a line.
 *
 * The end of standard input ends the process at once, without any order.
 */
final class Conversation {
    static final BlockingQueue<String> COMMANDS = new LinkedBlockingQueue<>();
    private static final PrintStream OUTPUT = System.out;

    interface Member {
        void live(Map<String, String> settings) throws Exception;
    }

    private Conversation() { }

    /** Let a member live until it ends the process itself; if it fails, say why and end it. */
    static void hold(String[] arguments, Member member) {
        // Client libraries write to System.out when they like; the lines of the member must stay whole.
        System.setOut(System.err);
        Thread reader = new Thread(() -> {
            Scanner lines = new Scanner(System.in);
            while (lines.hasNextLine()) COMMANDS.add(lines.nextLine().trim());
            Runtime.getRuntime().halt(3);
        }, "commands");
        reader.setDaemon(true);
        reader.start();
        try {
            member.live(settings(arguments));
        } catch (Throwable error) {
            error.printStackTrace();
            say("failed", "\"error\":" + quoted(String.valueOf(error)));
            Runtime.getRuntime().halt(1);
        }
    }

    /** Say the last word and end the process. */
    static void end(String event, String fields) {
        say(event, fields);
        Runtime.getRuntime().halt(0);
    }

    /** Say something, with these fields of a JSON object. */
    static synchronized void say(String event, String fields) {
        OUTPUT.println("{\"event\":" + quoted(event) + ",\"at_ms\":" + System.currentTimeMillis() + "," + fields + "}");
        OUTPUT.flush();
    }

    /** Answer a text as JSON writes it. */
    static String quoted(String text) {
        StringBuilder json = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') json.append('\\').append(c);
            else if (c < ' ') json.append(String.format("\\u%04x", (int) c));
            else json.append(c);
        }
        return json.append('"').toString();
    }

    private static Map<String, String> settings(String[] arguments) {
        Map<String, String> settings = new HashMap<>();
        for (String argument : arguments) {
            int cut = argument.indexOf('=');
            settings.put(argument.substring(0, cut), argument.substring(cut + 1));
        }
        return settings;
    }
}
