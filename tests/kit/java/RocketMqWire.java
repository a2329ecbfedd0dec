import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.LanguageCode;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;
import org.apache.rocketmq.remoting.protocol.SerializeType;

/**
 * Writes what RocketMQ's own classes make of chosen values: bodies, binary frames, signatures.
 *
 * <p>One line each: a name, a tab, the bytes in base64; for what cannot be written, a name and the error.
 */
public final class RocketMqWire {
    private interface Bytes {
        byte[] make() throws Exception;
    }

    public static void main(String[] arguments) {
        MessageQueue queue = new MessageQueue("T", "b", 3);
        Map<String, Object> shared = new LinkedHashMap<>();
        shared.put("x", 1);
        shared.put("list", Arrays.asList(1, 2));

        say("body-shared", () -> body("first", shared, "second", shared, "list", Arrays.asList(shared, queue, queue)));
        say("body-shared-odd-names", () -> {
            Map<Object, Object> table = new LinkedHashMap<>();
            table.put(queue, shared);
            table.put("a.b c[0]", Arrays.asList(shared, queue));
            return body("mqTable", table, "again", shared, "queue", queue);
        });
        say("body-of-itself", () -> {
            Map<String, Object> root = new LinkedHashMap<>();
            Map<String, Object> child = new LinkedHashMap<>();
            child.put("self", child);
            child.put("parent", root);
            root.put("child", child);
            root.put("root", root);
            return RemotingSerializable.encode(root);
        });
        say("body-keys", () -> {
            Map<Object, Object> table = new LinkedHashMap<>();
            table.put(1, "int");
            table.put(-2L, "long");
            table.put(true, "boolean");
            table.put("text", "text");
            table.put(queue, "queue");
            return body("table", table);
        });
        say("body-numbers", () -> body(
            "nan", Double.NaN, "infinity", Double.POSITIVE_INFINITY, "long", Long.MIN_VALUE, "double", 1.5e300,
            "float", 1.25f, "big", new BigInteger("123456789012345678901234567890"),
            "decimal", new BigDecimal("0.10"), "byte", (byte) -1, "whole", 3.0));
        say("body-texts", () -> {
            StringBuilder all = new StringBuilder();
            for (char letter = 0; letter < 0x180; letter++) {
                all.append(letter);
            }
            return body("all", all.toString(), "lines", "\u2028\u2029\ufeff", "emoji", "\ud83d\ude00", "half", "a\ud83db",
                "none", null, "character", 'c', "bytes", new byte[] {1, 2});
        });
        say("frame-request", () -> {
            RemotingCommand request = RemotingCommand.createRequestCommand(203, null);
            request.addExtField("consumerGroup", "gr\u00f6\u00dfe \u5de5");
            request.addExtField("empty", "");
            request.setBody("body".getBytes(StandardCharsets.UTF_8));
            return binary(request, 77);
        });
        say("frame-response", () -> {
            RemotingCommand response = RemotingCommand.createResponseCommand(17, "not \u00e4 topic");
            response.setLanguage(LanguageCode.GO);
            return binary(response, Integer.MAX_VALUE);
        });
        say("frame-bare", () -> binary(RemotingCommand.createResponseCommand(0, null), 0));
        say("signature", () -> signature(null));
        say("signature-token", () -> signature("a token"));
    }

    private static byte[] body(Object... pairs) {
        Map<String, Object> root = new LinkedHashMap<>();
        for (int at = 0; at < pairs.length; at += 2) {
            root.put((String) pairs[at], pairs[at + 1]);
        }
        return RemotingSerializable.encode(root);
    }

    private static byte[] binary(RemotingCommand command, int opaque) {
        command.setOpaque(opaque);
        command.setVersion(395);
        command.setSerializeTypeCurrentRPC(SerializeType.ROCKETMQ);
        ByteBuffer frame = command.encode();
        byte[] bytes = new byte[frame.remaining()];
        frame.get(bytes);
        return bytes;
    }

    /** Let the client's hook sign a request, and answer its fields as lines of name and value. */
    private static byte[] signature(String token) throws Exception {
        String place = "org.apache.rocketmq.acl.common.";
        Class<?> credentials = Class.forName(place + "SessionCredentials");
        Object session = token == null
            ? credentials.getConstructor(String.class, String.class).newInstance("rocket-\u00e4", "s\u00e4cret 123")
            : credentials.getConstructor(String.class, String.class, String.class)
                .newInstance("rocket-\u00e4", "s\u00e4cret 123", token);
        Class<?> type = Class.forName(place + "AclClientRPCHook");
        Object hook = type.getConstructor(credentials).newInstance(session);
        RemotingCommand request = RemotingCommand.createRequestCommand(400, null);
        Map<String, String> fields = new LinkedHashMap<>();
        fields.put("zone", "z\u00f6ne");
        fields.put("\ufb01rst", "after surrogates as UTF-8 sorts, before them as Java does not");
        fields.put("\ud83d\ude00", "smile");
        fields.put("Bname", "upper case goes first");
        request.setExtFields(new java.util.HashMap<>(fields));
        request.setBody("{\"topic\":\"T\u00f6pic\"}".getBytes(StandardCharsets.UTF_8));
        Method sign = type.getMethod("doBeforeRequest", String.class, RemotingCommand.class);
        sign.invoke(hook, "127.0.0.1:1", request);
        List<String> lines = new ArrayList<>();
        for (Map.Entry<String, String> field : new TreeMap<>(request.getExtFields()).entrySet()) {
            lines.add(field.getKey() + "\n" + field.getValue());
        }
        return String.join("\n", lines).getBytes(StandardCharsets.UTF_8);
    }

    private static void say(String name, Bytes bytes) {
        String told;
        try {
            told = Base64.getEncoder().encodeToString(bytes.make());
        } catch (Throwable error) {
            told = "!" + error.getClass().getName();
        }
        System.out.println(name + "\t" + told);
    }
}
