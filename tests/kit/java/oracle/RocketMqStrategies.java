import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageQueue;

/** The real RocketMQ strategies, asked as RebalanceImpl asks them: each member for each of its topics. */
public final class RocketMqStrategies {
    private RocketMqStrategies() {
    }

    public static void main(String[] arguments) throws Exception {
        Answers.serve(RocketMqStrategies::prepare);
    }

    private static Answers.Question prepare(Case question) {
        List<String> ids = new ArrayList<>();
        for (Case.Member member : question.members) {
            ids.add(member.id);
        }
        Collections.sort(ids);
        Map<String, List<MessageQueue>> topics = new LinkedHashMap<>();
        for (Case.Topic topic : question.topics.values()) {
            List<MessageQueue> queues = new ArrayList<>();
            for (Case.Queue queue : topic.queues) {
                queues.add(new MessageQueue(topic.name, queue.broker, queue.id));
            }
            Collections.sort(queues);
            topics.put(topic.name, queues);
        }
        return new Answers.Question() {
            @Override
            public Object ask() {
                Map<String, Set<MessageQueue>> held = new LinkedHashMap<>();
                for (Case.Member member : question.members) {
                    AllocateMessageQueueStrategy strategy = strategy(question, question.strategy, member.id);
                    Set<MessageQueue> mine = held.computeIfAbsent(member.id, id -> new LinkedHashSet<>());
                    for (String topic : member.subscriptions) {
                        List<MessageQueue> queues = topics.get(topic);
                        if (queues != null && !queues.isEmpty()) {
                            List<MessageQueue> given = strategy.allocate(question.group, member.id, queues, ids);
                            if (given != null) {
                                mine.addAll(given);
                            }
                        }
                    }
                }
                return held;
            }

            @Override
            @SuppressWarnings("unchecked")
            public Map<String, List<Case.Queue>> read(Object answer) {
                Map<String, List<Case.Queue>> found = new LinkedHashMap<>();
                ((Map<String, Set<MessageQueue>>) answer).forEach((id, queues) -> {
                    List<Case.Queue> read = new ArrayList<>();
                    for (MessageQueue queue : queues) {
                        read.add(new Case.Queue(queue.getTopic(), queue.getBrokerName(), queue.getQueueId()));
                    }
                    found.put(id, read);
                });
                return found;
            }
        };
    }

    private static AllocateMessageQueueStrategy strategy(Case question, String name, String member) {
        switch (name) {
            case "rocketmq.AVG":
                return new AllocateMessageQueueAveragely();
            case "rocketmq.AVG_BY_CIRCLE":
                return new AllocateMessageQueueAveragelyByCircle();
            case "rocketmq.CONSISTENT_HASH": {
                List<String> nodes = question.settings.get("virtual_nodes");
                return nodes == null ? new AllocateMessageQueueConsistentHash()
                    : new AllocateMessageQueueConsistentHash(Integer.parseInt(nodes.get(0)));
            }
            case "rocketmq.CONFIG": {
                AllocateMessageQueueByConfig config = new AllocateMessageQueueByConfig();
                List<String> queues = question.settings.get("queues");
                if (queues == null) {
                    queues = question.settings.get("queues of " + member);
                }
                if (queues != null) {
                    List<MessageQueue> list = new ArrayList<>();
                    for (int i = 0; i < queues.size(); i += 3) {
                        list.add(new MessageQueue(queues.get(i), queues.get(i + 1), Integer.parseInt(queues.get(i + 2))));
                    }
                    config.setMessageQueueList(list);
                }
                return config;
            }
            case "rocketmq.MACHINE_ROOM": {
                AllocateMessageQueueByMachineRoom room = new AllocateMessageQueueByMachineRoom();
                List<String> rooms = question.settings.get("rooms");
                if (rooms != null) {
                    room.setConsumeridcs(new HashSet<>(rooms));
                }
                return room;
            }
            case "rocketmq.MACHINE_ROOM_NEARBY": {
                List<String> inner = question.settings.get("inner");
                Map<String, String> brokers = question.map("broker_rooms");
                Map<String, String> members = question.map("member_rooms");
                return new AllocateMachineRoomNearby(
                    strategy(question, inner == null ? "rocketmq.AVG" : inner.get(0), member),
                    new AllocateMachineRoomNearby.MachineRoomResolver() {
                        @Override
                        public String brokerDeployIn(MessageQueue queue) {
                            return room(brokers, queue.getBrokerName());
                        }

                        @Override
                        public String consumerDeployIn(String id) {
                            return room(members, id);
                        }
                    });
            }
            default:
                throw new IllegalStateException(name);
        }
    }

    private static String room(Map<String, String> rooms, String name) {
        if (rooms != null) {
            return rooms.get(name);
        }
        int at = name.indexOf('@');
        return at < 0 ? name : name.substring(0, at);
    }
}
