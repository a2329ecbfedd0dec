import java.util.AbstractSet;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/** The real assignors of Kafka's group coordinator, asked as TargetAssignmentBuilder asks them. */
public final class KafkaServerAssignors {
    private KafkaServerAssignors() {
    }

    public static void main(String[] arguments) throws Exception {
        Answers.serve(KafkaServerAssignors::prepare);
    }

    private static Answers.Question prepare(Case question) {
        Map<String, Uuid> ids = new HashMap<>();
        Map<Uuid, Case.Topic> topics = new HashMap<>();
        int place = 0;
        for (Case.Topic topic : new TreeMap<>(question.topics).values()) {
            if (topic.queues.isEmpty()) {
                continue;
            }
            Uuid id = topic.topicId == null ? new Uuid(0, place) : Uuid.fromString(topic.topicId);
            place++;
            ids.put(topic.name, id);
            topics.put(id, topic);
        }
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        Set<Set<String>> kinds = new HashSet<>();
        for (Case.Member member : question.members) {
            Map<Uuid, List<Integer>> owned = new LinkedHashMap<>();
            if (member.owned != null) {
                for (Case.Queue queue : member.owned) {
                    Uuid id = ids.get(queue.topic);
                    if (id != null) {
                        owned.computeIfAbsent(id, key -> new ArrayList<>()).add(queue.id);
                        owners.computeIfAbsent(id, key -> new HashMap<>()).put(queue.id, member.id);
                    }
                }
            }
            // As Assignment.fromRecord reads a record.
            Map<Uuid, Set<Integer>> target = new HashMap<>();
            owned.forEach((id, numbers) -> target.put(id, new HashSet<>(numbers)));
            Set<String> names = new HashSet<>(member.subscriptions);
            kinds.add(names);
            members.put(member.id, new MemberSubscriptionAndAssignmentImpl(
                Optional.ofNullable(member.rack), Optional.ofNullable(member.instance),
                new TopicIds(names, ids), new Assignment(Collections.unmodifiableMap(target))));
        }
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid id) {
                Case.Topic topic = topics.get(id);
                return topic == null ? -1 : topic.queues.size();
            }

            @Override
            public Set<String> racksForPartition(Uuid id, int partition) {
                return topics.get(id).queues.stream().filter(queue -> queue.id == partition)
                    .flatMap(queue -> queue.racks.stream()).collect(Collectors.toSet());
            }
        };
        ConsumerGroupPartitionAssignor assignor =
            question.strategy.equals("kafka.server.range") ? new RangeAssignor() : new UniformAssignor();
        SubscriptionType type = kinds.size() <= 1 ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        GroupSpecImpl group = new GroupSpecImpl(members, type, owners);
        return new Answers.Question() {
            @Override
            public Object ask() {
                return assignor.assign(group, describer);
            }

            @Override
            public Map<String, List<Case.Queue>> read(Object answer) {
                Map<String, List<Case.Queue>> found = new LinkedHashMap<>();
                ((GroupAssignment) answer).members().forEach((member, assignment) -> {
                    List<Case.Queue> queues = new ArrayList<>();
                    assignment.partitions().forEach((id, numbers) -> {
                        Case.Topic topic = topics.get(id);
                        for (int number : numbers) {
                            queues.add(new Case.Queue(topic == null ? "?" : topic.name, null, number));
                        }
                    });
                    found.put(member, queues);
                });
                return found;
            }
        };
    }

    /** What the coordinator's TopicIds, which each version constructs in another way, shows of the names in a set. */
    private static final class TopicIds extends AbstractSet<Uuid> {
        private final Set<String> names;
        private final Map<String, Uuid> ids;

        TopicIds(Set<String> names, Map<String, Uuid> ids) {
            this.names = names;
            this.ids = ids;
        }

        @Override
        public int size() {
            return names.size();
        }

        @Override
        public Iterator<Uuid> iterator() {
            return names.stream().map(ids::get).filter(Objects::nonNull).iterator();
        }
    }
}
