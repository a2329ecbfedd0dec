import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetricsShard;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;
import org.apache.kafka.timeline.SnapshotRegistry;

/** Lets each line's members, MEMBER=ASSIGNOR, come and the last of them ask; says which assignor the group prefers. */
public final class KafkaServerVote {
    private KafkaServerVote() {
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            SnapshotRegistry registry = new SnapshotRegistry(new LogContext());
            ConsumerGroup group = new ConsumerGroup(registry, "g",
                new GroupCoordinatorMetricsShard(registry, new HashMap<>(), new TopicPartition("__consumer_offsets", 0)));
            String[] tokens = line.split("\t");
            for (int place = 0; place < tokens.length; place++) {
                String[] token = tokens[place].split("=");
                ConsumerGroupMember member = new ConsumerGroupMember.Builder(token[0])
                    .setServerAssignorName(token[1]).build();
                if (place < tokens.length - 1) {
                    group.updateMember(member);
                } else {
                    ConsumerGroupMember known = group.hasMember(token[0]) ? group.getOrMaybeCreateMember(token[0], false)
                        : new ConsumerGroupMember.Builder(token[0]).build();
                    out.println(group.computePreferredServerAssignor(known, member).orElse(""));
                }
            }
        }
        out.flush();
    }
}
