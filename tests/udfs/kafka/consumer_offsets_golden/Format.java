import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters;

/**
 * Prints records of __consumer_offsets as Kafka's own message formatters do: CoordinatorRecordMessageFormatter calls the
 * same converters.
 *
 * A line of the input is: key and value in hex, apart by a tab; of the output: {"key": ..., "value": ...}.
 */
public final class Format {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t", 2);
            ByteBuffer key = ByteBuffer.wrap(HexFormat.of().parseHex(parts[0]));
            ByteBuffer value = parts[1].isEmpty() ? null : ByteBuffer.wrap(HexFormat.of().parseHex(parts[1]));
            CoordinatorRecord record = serde.deserialize(key, value);
            ObjectNode node = mapper.createObjectNode();
            node.set("key", CoordinatorRecordJsonConverters.writeRecordKeyAsJson(record.key()));
            if (record.value() == null) {
                node.putNull("value");
            } else {
                node.set("value", CoordinatorRecordJsonConverters.writeRecordValueAsJson(
                        record.value().message(), record.value().version()));
            }
            System.out.println(mapper.writeValueAsString(node));
        }
    }
}
