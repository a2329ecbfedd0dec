import java.lang.reflect.Method;
import java.util.Arrays;

/** Runs another main class and ends when standard input does, so that no server outlives the tests that started it. */
public final class Guarded {
    public static void main(String[] arguments) throws Exception {
        Thread guard = new Thread(() -> {
            try {
                while (System.in.read() >= 0) { }
            } catch (java.io.IOException gone) {
                // The same as its end.
            }
            Runtime.getRuntime().halt(3);
        }, "guard");
        guard.setDaemon(true);
        guard.start();
        Method main = Class.forName(arguments[0]).getMethod("main", String[].class);
        main.invoke(null, (Object) Arrays.copyOfRange(arguments, 1, arguments.length));
    }
}
