import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.group.classic.ClassicGroup;
import org.apache.kafka.coordinator.group.classic.ClassicGroupMember;
import org.apache.kafka.coordinator.group.classic.ClassicGroupState;

/** The real vote of a classic group in the coordinator of Kafka 4. */
public final class KafkaVote {
    private KafkaVote() {
    }

    public static void main(String[] arguments) throws Exception {
        Answers.serve(KafkaVote::prepare);
    }

    private static Answers.Question prepare(Case question) {
        ClassicGroup group = new ClassicGroup(new LogContext(), question.group, ClassicGroupState.EMPTY, Time.SYSTEM);
        for (Case.Member member : question.members) {
            JoinGroupRequestData.JoinGroupRequestProtocolCollection protocols =
                new JoinGroupRequestData.JoinGroupRequestProtocolCollection();
            for (String name : member.strategies) {
                protocols.add(new JoinGroupRequestData.JoinGroupRequestProtocol().setName(name).setMetadata(new byte[0]));
            }
            ClassicGroupMember joined = new ClassicGroupMember(
                member.id, Optional.empty(), "client", "host", 1000, 1000, "consumer", protocols);
            add(group, joined);
        }
        return new Answers.Question() {
            @Override
            public Object ask() {
                return group.selectProtocol();
            }

            @Override
            public Map<String, List<Case.Queue>> read(Object answer) {
                return Collections.emptyMap();
            }
        };
    }

    /** Add without the check for a common protocol, which refuses a joiner before there is anything to vote on. */
    private static void add(ClassicGroup group, ClassicGroupMember member) {
        try {
            group.add(member);
        } catch (IllegalStateException refused) {
            throw new IllegalArgumentException("nothing in common with the members before");
        }
    }
}
