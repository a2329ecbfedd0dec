import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import kafka.coordinator.group.Empty$;
import kafka.coordinator.group.GroupMetadata;
import kafka.coordinator.group.MemberMetadata;
import scala.Tuple2;
import scala.collection.JavaConverters;

/** The real vote of a group in the coordinator of Kafka 1.0. */
public final class KafkaVoteOld {
    private KafkaVoteOld() {
    }

    public static void main(String[] arguments) throws Exception {
        Answers.serve(KafkaVoteOld::prepare);
    }

    private static Answers.Question prepare(Case question) {
        GroupMetadata group = new GroupMetadata(question.group, Empty$.MODULE$);
        for (Case.Member member : question.members) {
            List<Tuple2<String, byte[]>> protocols = new ArrayList<>();
            for (String name : member.strategies) {
                protocols.add(new Tuple2<>(name, new byte[0]));
            }
            group.add(new MemberMetadata(member.id, question.group, "client", "host", 1000, 1000, "consumer",
                JavaConverters.asScalaBufferConverter(protocols).asScala().toList()));
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
}
