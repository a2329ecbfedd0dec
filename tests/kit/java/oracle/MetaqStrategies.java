import com.taobao.metamorphosis.client.consumer.ConsisHashStrategy;
import com.taobao.metamorphosis.client.consumer.DefaultLoadBalanceStrategy;
import com.taobao.metamorphosis.client.consumer.LoadBalanceStrategy;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/** The real MetaQ strategies, asked as ConsumerZooKeeper asks them: each member for each of its topics. */
public final class MetaqStrategies {
    private MetaqStrategies() {
    }

    public static void main(String[] arguments) throws Exception {
        Answers.serve(MetaqStrategies::prepare);
    }

    private static LoadBalanceStrategy strategyOf(String name) {
        switch (name) {
            case "metaq.default":
                return new DefaultLoadBalanceStrategy();
            case "metaq.consistent-hash":
                return new ConsisHashStrategy();
            default:
                throw new IllegalArgumentException("unknown strategy: " + name);
        }
    }

    private static Answers.Question prepare(Case question) {
        Map<String, Map<String, Case.Queue>> queues = new LinkedHashMap<>();
        for (Case.Topic topic : question.topics.values()) {
            Map<String, Case.Queue> named = new LinkedHashMap<>();
            for (Case.Queue queue : topic.queues) {
                named.put(queue.broker + "-" + queue.id, queue);
            }
            queues.put(topic.name, named);
        }
        LoadBalanceStrategy strategy = strategyOf(question.strategy);
        return new Answers.Question() {
            @Override
            public Object ask() {
                Map<String, List<Case.Queue>> held = new LinkedHashMap<>();
                Map<String, List<String>> consumers = new LinkedHashMap<>();
                Map<String, List<String>> partitions = new LinkedHashMap<>();
                for (Case.Member member : question.members) {
                    for (String topic : member.subscriptions) {
                        consumers.computeIfAbsent(topic, key -> new ArrayList<>()).add(member.id);
                    }
                }
                for (Map.Entry<String, List<String>> entry : consumers.entrySet()) {
                    Collections.sort(entry.getValue());
                    Map<String, Case.Queue> named = queues.getOrDefault(entry.getKey(), Collections.emptyMap());
                    partitions.put(entry.getKey(), new ArrayList<>(new TreeSet<>(named.keySet())));
                }
                for (Case.Member member : question.members) {
                    List<Case.Queue> mine = new ArrayList<>();
                    held.put(member.id, mine);
                    for (String topic : member.subscriptions) {
                        if (partitions.get(topic).isEmpty()) {
                            continue;
                        }
                        for (String name : strategy.getPartitions(topic, member.id, consumers.get(topic), partitions.get(topic))) {
                            mine.add(queues.get(topic).get(name));
                        }
                    }
                }
                return held;
            }

            @Override
            @SuppressWarnings("unchecked")
            public Map<String, List<Case.Queue>> read(Object answer) {
                return (Map<String, List<Case.Queue>>) answer;
            }
        };
    }
}
