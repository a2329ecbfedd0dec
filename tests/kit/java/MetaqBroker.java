import com.taobao.gecko.service.config.ServerConfig;
import com.taobao.metamorphosis.server.assembly.MetaMorphosisBroker;
import com.taobao.metamorphosis.server.utils.MetaConfig;
import java.io.File;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.net.InetSocketAddress;

/**
 * A MetaQ broker that listens on the loopback address alone (its own start class listens on all) and takes up a
 * changed configuration file by itself (as its management bean does when it is asked to).
 *
 * Argument: the file.
 */
public final class MetaqBroker {
    private static final long LOOK_EVERY_MS = 100;

    public static void main(String[] arguments) throws Exception {
        MetaConfig config = new MetaConfig();
        config.loadFromFile(arguments[0]);
        config.verify();
        MetaMorphosisBroker broker = new MetaMorphosisBroker(config);
        settings(broker.getRemotingServer())
                .setLocalInetSocketAddress(
                        new InetSocketAddress(InetAddress.getLoopbackAddress(), config.getServerPort()));
        broker.start();
        System.out.println("started");
        File file = new File(arguments[0]);
        while (true) {
            Thread.sleep(LOOK_EVERY_MS);
            if (file.lastModified() != config.getLastModified()) config.reload();
        }
    }

    private static ServerConfig settings(Object server) throws IllegalAccessException {
        for (Class<?> kind = server.getClass(); kind != null; kind = kind.getSuperclass()) {
            for (Field field : kind.getDeclaredFields()) {
                field.setAccessible(true);
                if (field.get(server) instanceof ServerConfig) return (ServerConfig) field.get(server);
            }
        }
        throw new IllegalStateException("the server has no settings");
    }
}
