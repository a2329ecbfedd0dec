import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.types.ArrayOf;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Struct;
import org.apache.kafka.common.protocol.types.Type;

/** The real assignors of kafka-clients from 3.5 on, asked as a group's leader asks them. */
public final class KafkaAssignors {
    private static final Schema TOPIC =
        new Schema(new Field("topic", Type.STRING), new Field("partitions", new ArrayOf(Type.INT32)));
    private static final Schema STICKY =
        new Schema(new Field("previous_assignment", new ArrayOf(TOPIC)), new Field("generation", Type.INT32));
    private static final Schema COOPERATIVE = new Schema(new Field("generation", Type.INT32));

    private KafkaAssignors() {
    }

    public static void main(String[] arguments) throws Exception {
        Answers.serve(KafkaAssignors::prepare);
    }

    private static Answers.Question prepare(Case question) {
        Map<String, Node> nodes = new LinkedHashMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        for (Case.Topic topic : question.topics.values()) {
            for (Case.Queue queue : topic.queues) {
                Node[] replicas = new Node[queue.racks.size()];
                for (int i = 0; i < replicas.length; i++) {
                    String rack = queue.racks.get(i);
                    replicas[i] = nodes.computeIfAbsent(rack, r -> new Node(nodes.size(), "host", 1, r));
                }
                partitions.add(new PartitionInfo(topic.name, queue.id, null, replicas, replicas));
            }
        }
        Cluster cluster =
            new Cluster("cluster", nodes.values(), partitions, Collections.emptySet(), Collections.emptySet());
        Map<String, ConsumerPartitionAssignor.Subscription> subscriptions = new HashMap<>();
        for (Case.Member member : question.members) {
            List<TopicPartition> owned = new ArrayList<>();
            if (member.owned != null) {
                for (Case.Queue queue : member.owned) {
                    owned.add(new TopicPartition(queue.topic, queue.id));
                }
            }
            int generation = member.generation == null ? -1 : member.generation;
            ByteBuffer userData = null;
            if (member.owned != null || member.generation != null) {
                userData = question.strategy.equals("kafka.sticky") ? sticky(owned, generation) : cooperative(generation);
            }
            ConsumerPartitionAssignor.Subscription subscription = new ConsumerPartitionAssignor.Subscription(
                member.subscriptions, userData, owned, generation, Optional.ofNullable(member.rack));
            subscription.setGroupInstanceId(Optional.ofNullable(member.instance));
            subscriptions.put(member.id, subscription);
        }
        ConsumerPartitionAssignor assignor = assignor(question.strategy);
        ConsumerPartitionAssignor.GroupSubscription group = new ConsumerPartitionAssignor.GroupSubscription(subscriptions);
        return new Answers.Question() {
            @Override
            public Object ask() {
                return assignor.assign(cluster, group).groupAssignment();
            }

            @Override
            @SuppressWarnings("unchecked")
            public Map<String, List<Case.Queue>> read(Object answer) {
                Map<String, List<Case.Queue>> found = new LinkedHashMap<>();
                ((Map<String, ConsumerPartitionAssignor.Assignment>) answer).forEach((id, assignment) -> {
                    List<Case.Queue> queues = new ArrayList<>();
                    for (TopicPartition partition : assignment.partitions()) {
                        queues.add(new Case.Queue(partition.topic(), null, partition.partition()));
                    }
                    found.put(id, queues);
                });
                return found;
            }
        };
    }

    private static ConsumerPartitionAssignor assignor(String name) {
        switch (name) {
            case "kafka.range":
                return new RangeAssignor();
            case "kafka.roundrobin":
                return new RoundRobinAssignor();
            case "kafka.sticky":
                return new StickyAssignor();
            case "kafka.cooperative-sticky":
                return new CooperativeStickyAssignor();
            default:
                throw new IllegalStateException(name);
        }
    }

    private static ByteBuffer sticky(List<TopicPartition> owned, int generation) {
        Map<String, List<Integer>> byTopic = new LinkedHashMap<>();
        for (TopicPartition partition : owned) {
            byTopic.computeIfAbsent(partition.topic(), topic -> new ArrayList<>()).add(partition.partition());
        }
        Struct struct = new Struct(STICKY);
        List<Struct> topics = new ArrayList<>();
        byTopic.forEach((topic, numbers) -> {
            Struct of = new Struct(TOPIC);
            of.set("topic", topic);
            of.set("partitions", numbers.toArray());
            topics.add(of);
        });
        struct.set("previous_assignment", topics.toArray());
        struct.set("generation", generation);
        return written(STICKY, struct);
    }

    private static ByteBuffer cooperative(int generation) {
        Struct struct = new Struct(COOPERATIVE);
        struct.set("generation", generation);
        return written(COOPERATIVE, struct);
    }

    private static ByteBuffer written(Schema schema, Struct struct) {
        ByteBuffer buffer = ByteBuffer.allocate(schema.sizeOf(struct));
        schema.write(buffer, struct);
        buffer.flip();
        return buffer;
    }
}
