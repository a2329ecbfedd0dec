import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.coordinator.group.generated.*;

/**
 * Records, with Kafka's own classes, the bytes that tests/udfs/kafka/test_consumer_offsets.py decodes:
 *
 *   java -cp "<jars of kafka 4.1.1>/*" Record.java > records.tsv
 *
 * A line is: name, tab, bytes in hex.
 */
public final class Record {
    public static void main(String[] arguments) {
        ByteBuffer subscription = ConsumerProtocol.serializeSubscription(
                new Subscription(List.of("orders", "bills"), ByteBuffer.wrap(new byte[0]), List.of(at("orders", 1), at("bills", 0)), 4, Optional.of("rack-a")));
        for (short version = 0; version <= 3; version++) {
            tell("subscription-" + version, ConsumerProtocol.serializeSubscription(
                    new Subscription(List.of("orders", "bills"), null, List.of(at("orders", 1), at("bills", 0)), 4, Optional.of("rack-a")), version));
            tell("assignment-" + version, ConsumerProtocol.serializeAssignment(
                    new Assignment(List.of(at("orders", 2), at("orders", 0), at("bills", 0))), version));
        }
        StickyAssignor sticky = new StickyAssignor();
        sticky.onAssignment(new Assignment(List.of(at("orders", 3), at("orders", 1))), new ConsumerGroupMetadata("g", 7, "m", Optional.empty()));
        tell("sticky-1", ConsumerProtocol.serializeSubscription(
                new Subscription(List.of("orders"), sticky.subscriptionUserData(Set.of("orders")), List.of(), -1, Optional.empty()), (short) 3));
        tell("sticky-none", ConsumerProtocol.serializeSubscription(
                new Subscription(List.of("orders"), new StickyAssignor().subscriptionUserData(Set.of("orders")), List.of(), -1, Optional.empty()), (short) 1));
        CooperativeStickyAssignor cooperative = new CooperativeStickyAssignor();
        cooperative.onAssignment(new Assignment(List.of(at("orders", 3))), new ConsumerGroupMetadata("g", 9, "m", Optional.empty()));
        tell("cooperative-1", ConsumerProtocol.serializeSubscription(
                new Subscription(List.of("orders"), cooperative.subscriptionUserData(Set.of("orders")), List.of(at("orders", 3)), -1, Optional.empty()), (short) 1));

        for (short version = 0; version <= 4; version++) {
            GroupMetadataValue.MemberMetadata first = new GroupMetadataValue.MemberMetadata()
                    .setMemberId("b-uuid").setClientId("b").setClientHost("/10.0.0.2")
                    .setRebalanceTimeout(300000).setSessionTimeout(45000)
                    .setSubscription(bytes(subscription.duplicate()))
                    .setAssignment(bytes(ConsumerProtocol.serializeAssignment(new Assignment(List.of(at("orders", 1))))));
            GroupMetadataValue.MemberMetadata second = new GroupMetadataValue.MemberMetadata()
                    .setMemberId("static-uuid").setGroupInstanceId("static").setClientId("consumer-g-1").setClientHost("/10.0.0.1")
                    .setRebalanceTimeout(60000).setSessionTimeout(10000)
                    .setSubscription(bytes(ConsumerProtocol.serializeSubscription(
                            new Subscription(List.of("orders"), null, List.of(), -1, Optional.empty()), (short) 0)))
                    .setAssignment(bytes(ConsumerProtocol.serializeAssignment(new Assignment(List.of(at("orders", 0), at("orders", 2))))));
            tell("group-" + version, new GroupMetadataValue().setProtocolType("consumer").setGeneration(5)
                    .setProtocol("range").setLeader("b-uuid").setCurrentStateTimestamp(1700000000500L)
                    .setMembers(List.of(first, second)), version);
            tell("empty-" + version, new GroupMetadataValue().setProtocolType("consumer").setGeneration(6)
                    .setProtocol(null).setLeader(null).setCurrentStateTimestamp(1700000000500L), version);
            tell("commit-" + version, new OffsetCommitValue().setOffset(42).setLeaderEpoch(version >= 3 ? 1 : -1).setMetadata("who: é")
                    .setCommitTimestamp(1700000000123L).setExpireTimestamp(version == 1 ? 1700000009999L : -1L)
                    .setTopicId(version >= 4 ? new Uuid(1, 2) : Uuid.ZERO_UUID), version);
        }
        tell("commit-4-bare", new OffsetCommitValue().setOffset(42).setCommitTimestamp(1700000000123L), (short) 4);
        tell("connect", new GroupMetadataValue().setProtocolType("connect").setGeneration(1).setProtocol("sessioned")
                .setLeader("w").setMembers(List.of(new GroupMetadataValue.MemberMetadata().setMemberId("w")
                        .setSubscription(new byte[] {1, 2, 3}).setAssignment(new byte[] {4}))), (short) 3);

        tell("key-0", MessageUtil.toCoordinatorTypePrefixedByteBuffer(new LegacyOffsetCommitKey().setGroup("g").setTopic("orders").setPartition(3)));
        tell("key-1", MessageUtil.toCoordinatorTypePrefixedByteBuffer(new OffsetCommitKey().setGroup("g").setTopic("orders").setPartition(3)));
        tell("key-2", MessageUtil.toCoordinatorTypePrefixedByteBuffer(new GroupMetadataKey().setGroup("g")));
        tell("key-3", MessageUtil.toCoordinatorTypePrefixedByteBuffer(new ConsumerGroupMetadataKey().setGroupId("g")));
        tell("key-4", MessageUtil.toCoordinatorTypePrefixedByteBuffer(new ConsumerGroupPartitionMetadataKey().setGroupId("g")));
        tell("key-5", MessageUtil.toCoordinatorTypePrefixedByteBuffer(new ConsumerGroupMemberMetadataKey().setGroupId("g").setMemberId("m")));
        tell("key-6", MessageUtil.toCoordinatorTypePrefixedByteBuffer(new ConsumerGroupTargetAssignmentMetadataKey().setGroupId("g")));
        tell("key-7", MessageUtil.toCoordinatorTypePrefixedByteBuffer(new ConsumerGroupTargetAssignmentMemberKey().setGroupId("g").setMemberId("m")));
        tell("key-8", MessageUtil.toCoordinatorTypePrefixedByteBuffer(new ConsumerGroupCurrentMemberAssignmentKey().setGroupId("g").setMemberId("m")));
        tell("key-10", MessageUtil.toCoordinatorTypePrefixedByteBuffer(new ShareGroupMemberMetadataKey().setGroupId("g").setMemberId("m")));
        tell("key-11", MessageUtil.toCoordinatorTypePrefixedByteBuffer(new ShareGroupMetadataKey().setGroupId("g")));
        tell("key-12", MessageUtil.toCoordinatorTypePrefixedByteBuffer(new ShareGroupTargetAssignmentMetadataKey().setGroupId("g")));
        tell("key-13", MessageUtil.toCoordinatorTypePrefixedByteBuffer(new ShareGroupTargetAssignmentMemberKey().setGroupId("g").setMemberId("m")));
        tell("key-14", MessageUtil.toCoordinatorTypePrefixedByteBuffer(new ShareGroupCurrentMemberAssignmentKey().setGroupId("g").setMemberId("m")));
        tell("key-15", MessageUtil.toCoordinatorTypePrefixedByteBuffer(new ShareGroupStatePartitionMetadataKey().setGroupId("g")));
        tell("key-16", MessageUtil.toCoordinatorTypePrefixedByteBuffer(new ConsumerGroupRegularExpressionKey().setGroupId("g").setRegularExpression("o.*")));
        tell("key-17", MessageUtil.toCoordinatorTypePrefixedByteBuffer(new StreamsGroupMetadataKey().setGroupId("g")));
        tell("key-19", MessageUtil.toCoordinatorTypePrefixedByteBuffer(new StreamsGroupMemberMetadataKey().setGroupId("g").setMemberId("m")));
        tell("key-20", MessageUtil.toCoordinatorTypePrefixedByteBuffer(new StreamsGroupTargetAssignmentMetadataKey().setGroupId("g")));
        tell("key-21", MessageUtil.toCoordinatorTypePrefixedByteBuffer(new StreamsGroupTargetAssignmentMemberKey().setGroupId("g").setMemberId("m")));
        tell("key-22", MessageUtil.toCoordinatorTypePrefixedByteBuffer(new StreamsGroupCurrentMemberAssignmentKey().setGroupId("g").setMemberId("m")));
        tell("key-23", MessageUtil.toCoordinatorTypePrefixedByteBuffer(new StreamsGroupTopologyKey().setGroupId("g")));
        tell("consumer-group", new ConsumerGroupMetadataValue().setEpoch(3).setMetadataHash(99), (short) 0);
        tell("partition-metadata", new ConsumerGroupPartitionMetadataValue().setTopics(List.of(
                new ConsumerGroupPartitionMetadataValue.TopicMetadata().setTopicId(new Uuid(1, 2)).setTopicName("orders")
                        .setNumPartitions(2).setPartitionMetadata(List.of(
                                new ConsumerGroupPartitionMetadataValue.PartitionMetadata().setPartition(1).setRacks(List.of("rack-a", "rack-b")))),
                new ConsumerGroupPartitionMetadataValue.TopicMetadata().setTopicId(new Uuid(3, 4)).setTopicName("bills")
                        .setNumPartitions(1))), (short) 0);
        tell("share-group", new ShareGroupMetadataValue().setEpoch(2), (short) 0);
        tell("streams-group", new StreamsGroupMetadataValue().setEpoch(2), (short) 0);
        StreamsGroupTopologyValue.TopicInfo changelog = new StreamsGroupTopologyValue.TopicInfo().setName("store-changelog")
                .setPartitions(4).setReplicationFactor((short) 1).setTopicConfigs(List.of(
                        new StreamsGroupTopologyValue.TopicConfig().setKey("cleanup.policy").setValue("compact")));
        tell("topology", new StreamsGroupTopologyValue().setEpoch(3).setSubtopologies(List.of(
                new StreamsGroupTopologyValue.Subtopology().setSubtopologyId("0").setSourceTopics(List.of("orders", "bills"))
                        .setSourceTopicRegex(List.of("b.*")).setStateChangelogTopics(List.of(changelog))
                        .setRepartitionSinkTopics(List.of("by-user-repartition"))
                        .setCopartitionGroups(List.of(new StreamsGroupTopologyValue.CopartitionGroup()
                                .setSourceTopics(List.of((short) 0, (short) 1)).setSourceTopicRegex(List.of((short) 0)))),
                new StreamsGroupTopologyValue.Subtopology().setSubtopologyId("1")
                        .setRepartitionSourceTopics(List.of(new StreamsGroupTopologyValue.TopicInfo().setName("by-user-repartition")
                                .setPartitions(2).setReplicationFactor((short) 1))))), (short) 0);
        tell("streams-target", new StreamsGroupTargetAssignmentMemberValue()
                .setActiveTasks(List.of(target("0", 2, 0), target("1", 1))).setStandbyTasks(List.of(target("0", 1)))
                .setWarmupTasks(List.of(target("0", 3))), (short) 0);
        tell("streams-current", new StreamsGroupCurrentMemberAssignmentValue().setMemberEpoch(4).setPreviousMemberEpoch(3)
                .setState((byte) 2).setActiveTasks(List.of(current("0", 0))).setStandbyTasks(List.of(current("0", 1)))
                .setWarmupTasks(List.of(current("0", 3))).setActiveTasksPendingRevocation(List.of(current("0", 2)))
                .setStandbyTasksPendingRevocation(List.of(current("1", 0)))
                .setWarmupTasksPendingRevocation(List.of(current("1", 1))), (short) 0);
    }

    private static TopicPartition at(String topic, int partition) {
        return new TopicPartition(topic, partition);
    }

    private static StreamsGroupTargetAssignmentMemberValue.TaskIds target(String subtopology, Integer... tasks) {
        return new StreamsGroupTargetAssignmentMemberValue.TaskIds().setSubtopologyId(subtopology).setPartitions(List.of(tasks));
    }

    private static StreamsGroupCurrentMemberAssignmentValue.TaskIds current(String subtopology, Integer... tasks) {
        return new StreamsGroupCurrentMemberAssignmentValue.TaskIds().setSubtopologyId(subtopology).setPartitions(List.of(tasks));
    }

    private static byte[] bytes(ByteBuffer buffer) {
        byte[] copy = new byte[buffer.remaining()];
        buffer.duplicate().get(copy);
        return copy;
    }

    private static void tell(String name, ApiMessage message, short version) {
        tell(name, MessageUtil.toVersionPrefixedByteBuffer(version, message));
    }

    private static void tell(String name, ByteBuffer buffer) {
        System.out.println(name + "\t" + HexFormat.of().formatHex(bytes(buffer)));
    }
}
