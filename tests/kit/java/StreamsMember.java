import java.util.Arrays;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;

/**
 * One real instance of a Kafka Streams application that reads topics and keeps no state. It says what it holds.
 *
 * Arguments: settings of StreamsConfig, and topics=a,b. Command: close.
 */
public final class StreamsMember {
    private StreamsMember() { }

    public static void main(String[] arguments) {
        Conversation.hold(arguments, settings -> {
            Properties properties = new Properties();
            properties.putAll(settings);
            String topics = (String) properties.remove("topics");
            properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
            properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
            StreamsBuilder builder = new StreamsBuilder();
            builder.stream(Arrays.asList(topics.split(","))).foreach((key, value) -> { });
            KafkaStreams streams = new KafkaStreams(builder.build(), properties);
            streams.setStateListener((now, before) -> {
                if (now == KafkaStreams.State.RUNNING) Conversation.say("assigned", "\"owned\":" + owned(streams));
            });
            streams.start();
            while (!Conversation.COMMANDS.take().equals("close")) { }
            streams.close();
            Conversation.end("closed", "\"owned\":[]");
        });
    }

    /** The partitions of its active tasks, as JSON. */
    private static String owned(KafkaStreams streams) {
        return streams.metadataForLocalThreads().stream()
            .flatMap(thread -> thread.activeTasks().stream())
            .flatMap(task -> task.topicPartitions().stream())
            .map(one -> "[" + Conversation.quoted(one.topic()) + "," + one.partition() + "]")
            .sorted()
            .collect(Collectors.joining(",", "[", "]"));
    }
}
