import java.io.FileInputStream;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.util.Base64;

/** Prints a key of a PKCS12 store and its certificates as PEM: `KeyStoreToPem STORE PASSWORD ALIAS`. */
public final class KeyStoreToPem {
    public static void main(String[] arguments) throws Exception {
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
