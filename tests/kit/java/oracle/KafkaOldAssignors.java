import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.clients.consumer.internals.PartitionAssignor;
import org.apache.kafka.common.TopicPartition;

/** The real range and roundrobin of kafka-clients up to 2.3. */
public final class KafkaOldAssignors {
    private KafkaOldAssignors() {
    }

    public static void main(String[] arguments) throws Exception {
        Answers.serve(KafkaOldAssignors::prepare);
    }

    private static Answers.Question prepare(Case question) {
        Map<String, Integer> counts = new HashMap<>();
        Map<String, PartitionAssignor.Subscription> subscriptions = new HashMap<>();
        for (Case.Member member : question.members) {
            subscriptions.put(member.id, new PartitionAssignor.Subscription(member.subscriptions));
            for (String topic : member.subscriptions) {
                Case.Topic known = question.topics.get(topic);
                if (known != null && !known.queues.isEmpty()) {
                    counts.put(topic, known.queues.size());
                }
            }
        }
        AbstractPartitionAssignor assignor =
            question.strategy.equals("kafka.range") ? new RangeAssignor() : new RoundRobinAssignor();
        return new Answers.Question() {
            @Override
            public Object ask() {
                return assignor.assign(counts, subscriptions);
            }

            @Override
            @SuppressWarnings("unchecked")
            public Map<String, List<Case.Queue>> read(Object answer) {
                Map<String, List<Case.Queue>> found = new LinkedHashMap<>();
                ((Map<String, List<TopicPartition>>) answer).forEach((id, partitions) -> {
                    List<Case.Queue> queues = new ArrayList<>();
                    for (TopicPartition partition : partitions) {
                        queues.add(new Case.Queue(partition.topic(), null, partition.partition()));
                    }
                    found.put(id, queues);
                });
                return found;
            }
        };
    }
}
