import java.util.Collections;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;

/**
 * One real push consumer of RocketMQ's gRPC client, behind a proxy.
 *
 * Arguments: endpoint, group, topic. Command: shutdown.
 */
public final class GrpcMember {
    private GrpcMember() { }

    public static void main(String[] arguments) {
        Conversation.hold(arguments, settings -> {
            ClientConfiguration configuration = ClientConfiguration.newBuilder()
                .setEndpoints(settings.get("endpoint"))
                .enableSsl(false)
                .build();
            PushConsumer consumer = ClientServiceProvider.loadService().newPushConsumerBuilder()
                .setClientConfiguration(configuration)
                .setConsumerGroup(settings.get("group"))
                .setSubscriptionExpressions(Collections.singletonMap(settings.get("topic"), FilterExpression.SUB_ALL))
                .setMessageListener(message -> {
                    Conversation.say("read", "\"records\":1");
                    return ConsumeResult.SUCCESS;
                })
                .build();
            Conversation.say("started", "\"records\":0");
            while (!Conversation.COMMANDS.take().equals("shutdown")) { }
            consumer.close();
            Conversation.end("stopped", "\"records\":0");
        });
    }
}
