import java.net.InetSocketAddress;
import java.util.Arrays;
import javassist.CannotCompileException;
import javassist.ClassPool;
import javassist.CtClass;
import javassist.LoaderClassPath;
import javassist.expr.ExprEditor;
import javassist.expr.FieldAccess;
import javassist.expr.MethodCall;
import javassist.expr.NewExpr;

/**
 * Runs a main class of RocketMQ with all its listeners on the loopback address.
 *
 * The port for slaves (HAService) listens on every address of the machine and no setting changes that; in 4.9 the
 * others do so too, and so do proxies. So, before these classes are used, `new InetSocketAddress(port)` in them becomes
 * `new InetSocketAddress("127.0.0.1", port)`, with the javassist that both servers bring.
 */
public final class RocketMqLoopback {
    private static final String[] LISTENERS = {
        "org.apache.rocketmq.remoting.netty.NettyRemotingServer",
        "org.apache.rocketmq.store.ha.HAService$AcceptSocketService",
        "org.apache.rocketmq.store.ha.DefaultHAService$AcceptSocketService",
        "org.apache.rocketmq.remoting.netty.NettyServerConfig",
        "org.apache.rocketmq.proxy.grpc.GrpcServerBuilder",
    };

    public static void main(String[] arguments) throws Exception {
        ClassLoader loader = RocketMqLoopback.class.getClassLoader();
        ClassPool classes = new ClassPool(false);
        classes.appendClassPath(new LoaderClassPath(loader));
        for (String name : LISTENERS) {
            if (loader.getResource(name.replace('.', '/') + ".class") != null) {
                CtClass listener = classes.get(name);
                listener.instrument(new OnLoopback());
                listener.toClass(loader, null);
            }
        }
        Class.forName(arguments[0])
                .getMethod("main", String[].class)
                .invoke(null, (Object) Arrays.copyOfRange(arguments, 1, arguments.length));
    }

    private static final class OnLoopback extends ExprEditor {
        @Override
        public void edit(NewExpr creation) throws CannotCompileException {
            boolean everywhere = creation.getClassName().equals(InetSocketAddress.class.getName())
                    && creation.getSignature().equals("(I)V");
            if (everywhere) creation.replace("{ $_ = new java.net.InetSocketAddress(\"127.0.0.1\", $1); }");
        }

        @Override
        public void edit(MethodCall call) throws CannotCompileException {
            if (!call.getMethodName().equals("forPort")) return;
            call.replace("{ $_ = " + call.getClassName()
                    + ".forAddress(new java.net.InetSocketAddress(\"127.0.0.1\", $1)); }");
        }

        @Override
        public void edit(FieldAccess access) throws CannotCompileException {
            boolean isAddress = access.getFieldName().equals("bindAddress") && access.isReader();
            if (isAddress) access.replace("{ $_ = \"127.0.0.1\"; }");
        }
    }
}
