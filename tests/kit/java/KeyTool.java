import java.io.FileInputStream;
import java.lang.reflect.Method;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.util.Base64;
import java.util.Scanner;

/**
 * Runs many commands of Java's keytool in one process, then prints a key of a PKCS12 store and its certificates as PEM:
 * `KeyTool STORE PASSWORD ALIAS`. Standard input has a command a line, its words separated by tabs.
 */
public final class KeyTool {
    public static void main(String[] arguments) throws Exception {
        Method tool = Class.forName("sun.security.tools.keytool.Main").getMethod("main", String[].class);
        try (Scanner commands = new Scanner(System.in)) {
            while (commands.hasNextLine()) tool.invoke(null, (Object) commands.nextLine().split("\t"));
        }
        KeyStore store = KeyStore.getInstance("PKCS12");
        char[] password = arguments[1].toCharArray();
        try (FileInputStream file = new FileInputStream(arguments[0])) {
            store.load(file, password);
        }
        print("PRIVATE" + " KEY", store.getKey(arguments[2], password).getEncoded());
        for (Certificate certificate : store.getCertificateChain(arguments[2])) {
            print("CERTIFICATE", certificate.getEncoded());
        }
    }

    private static void print(String kind, byte[] content) {
        String text = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(content);
        System.out.println("-----BEGIN " + kind + "-----\n" + text + "\n-----END " + kind + "-----");
    }
}
