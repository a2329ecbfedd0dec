import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** One question to a strategy, read from a line of tab-separated, percent-encoded tokens; "!" is null. */
final class Case {
    static final class Queue {
        final String topic;
        final String broker;
        final int id;
        final List<String> racks = new ArrayList<>();

        Queue(String topic, String broker, int id) {
            this.topic = topic;
            this.broker = broker;
            this.id = id;
        }
    }

    static final class Member {
        String id;
        String instance;
        String rack;
        Integer generation;
        final List<String> subscriptions = new ArrayList<>();
        final List<String> strategies = new ArrayList<>();
        List<Queue> owned;
    }

    static final class Topic {
        String name;
        String topicId;
        final List<Queue> queues = new ArrayList<>();
    }

    String strategy;
    String group;
    final List<Member> members = new ArrayList<>();
    final Map<String, Topic> topics = new LinkedHashMap<>();
    final Map<String, List<String>> settings = new LinkedHashMap<>();

    private final String[] tokens;
    private int next;

    Case(String line) {
        tokens = line.split("\t", -1);
        strategy = text();
        group = text();
        for (int i = number(); i > 0; i--) {
            Member member = new Member();
            member.id = text();
            member.instance = text();
            member.rack = text();
            String generation = text();
            member.generation = generation == null ? null : Integer.valueOf(generation);
            texts(member.subscriptions);
            texts(member.strategies);
            int owned = number();
            if (owned >= 0) {
                member.owned = new ArrayList<>();
                for (; owned > 0; owned--) {
                    member.owned.add(new Queue(text(), null, number()));
                }
            }
            members.add(member);
        }
        for (int i = number(); i > 0; i--) {
            Topic topic = new Topic();
            topic.name = text();
            topic.topicId = text();
            for (int j = number(); j > 0; j--) {
                Queue queue = new Queue(topic.name, text(), number());
                texts(queue.racks);
                topic.queues.add(queue);
            }
            topics.put(topic.name, topic);
        }
        for (int i = number(); i > 0; i--) {
            List<String> values = new ArrayList<>();
            settings.put(text(), values);
            texts(values);
        }
    }

    Map<String, String> map(String setting) {
        List<String> values = settings.get(setting);
        if (values == null) {
            return null;
        }
        Map<String, String> map = new LinkedHashMap<>();
        for (int i = 0; i < values.size(); i += 2) {
            map.put(values.get(i), values.get(i + 1));
        }
        return map;
    }

    private void texts(List<String> into) {
        for (int i = number(); i > 0; i--) {
            into.add(text());
        }
    }

    private int number() {
        return Integer.parseInt(tokens[next++]);
    }

    private String text() {
        String token = tokens[next++];
        return token.equals("!") ? null : URLDecoder.decode(token, StandardCharsets.UTF_8);
    }
}
