import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Answers each line of standard input with one line; a case that runs past the limit is said to. */
final class Answers {
    /** What a real class is asked; made ready outside of the time that is measured. */
    interface Question {
        Object ask() throws Exception;

        /** Member id to its queues, or a text as the only entry under "". */
        Map<String, List<Case.Queue>> read(Object answer);
    }

    interface Reader {
        Question prepare(Case question) throws Exception;
    }

    private Answers() {
    }

    static void serve(Reader reader) throws Exception {
        long limitMs = Long.parseLong(System.getProperty("limitMs", "10000"));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        // Whatever the real classes print must not mix with the answers.
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        ExecutorService worker = daemon();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            int repeats = 0;
            if (line.startsWith("time\t")) {
                String[] parts = line.split("\t", 3);
                repeats = Integer.parseInt(parts[1]);
                line = parts[2];
            }
            Case question = new Case(line);
            final int times = repeats;
            long start = System.nanoTime();
            Future<String> answer = worker.submit(() -> answer(reader, question, times));
            try {
                String said = answer.get(limitMs, TimeUnit.MILLISECONDS);
                out.println((System.nanoTime() - start) / 1000 + "\t" + said);
            } catch (TimeoutException late) {
                out.println(limitMs * 1000 + "\tpast");
                worker = daemon();
            }
            out.flush();
        }
        System.exit(0);
    }

    private static ExecutorService daemon() {
        return Executors.newSingleThreadExecutor(task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
        });
    }

    private static String answer(Reader reader, Case question, int repeats) {
        try {
            if (repeats > 0) {
                long[] nanos = new long[repeats];
                for (int i = 0; i < repeats; i++) {
                    Question ready = reader.prepare(question);
                    long start = System.nanoTime();
                    ready.ask();
                    nanos[i] = System.nanoTime() - start;
                }
                // The first half warms up.
                long[] measured = Arrays.copyOfRange(nanos, repeats / 2, repeats);
                Arrays.sort(measured);
                return "nanos\t" + measured[measured.length / 2];
            }
            Question ready = reader.prepare(question);
            Object answer = ready.ask();
            if (answer instanceof String) {
                return "text\t" + encoded((String) answer);
            }
            Map<String, List<Case.Queue>> found = ready.read(answer);
            StringBuilder line = new StringBuilder("ok");
            for (Case.Member member : question.members) {
                List<Case.Queue> queues = found.getOrDefault(member.id, Collections.emptyList());
                line.append('\t').append(queues.size());
                for (Case.Queue queue : queues) {
                    line.append('\t').append(encoded(queue.topic));
                    line.append('\t').append(encoded(queue.broker));
                    line.append('\t').append(queue.id);
                }
            }
            return line.toString();
        } catch (Throwable error) {
            return "error\t" + encoded(error.getClass().getName());
        }
    }

    private static String encoded(String text) {
        return text == null ? "!" : URLEncoder.encode(text, StandardCharsets.UTF_8);
    }
}
