import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.HashMap;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicPartition;

/** Assignors that do not keep to their names: what an audit must find. For kafka-clients 4.1. */
public final class WrongAssignors {
    private WrongAssignors() {}

    /** Calls itself range, and gives each member what range gives to the next. */
    public static final class Rotated extends RangeAssignor {
        @Override
        public GroupAssignment assign(Cluster metadata, GroupSubscription subscriptions) {
            Map<String, Assignment> given = super.assign(metadata, subscriptions).groupAssignment();
            List<String> members = new ArrayList<>(given.keySet());
            Collections.sort(members);
            Map<String, Assignment> rotated = new HashMap<>();
            for (int place = 0; place < members.size(); place++) {
                rotated.put(members.get(place), given.get(members.get((place + 1) % members.size())));
            }
            return new GroupAssignment(rotated);
        }
    }

    /** A sticky member that remembers other partitions than it was given: 0 for 2, 1 for 3, and the other way round. */
    public static final class Forgetful extends StickyAssignor {
        @Override
        public void onAssignment(Assignment given, ConsumerGroupMetadata metadata) {
            List<TopicPartition> others = new ArrayList<>();
            for (TopicPartition one : given.partitions()) {
                others.add(new TopicPartition(one.topic(), one.partition() ^ 2));
            }
            super.onAssignment(new Assignment(others, given.userData()), metadata);
        }
    }
}
