package dev.timebound.samples.kafka;

import dev.timebound.samples.kafka.group.Node;
import dev.timebound.samples.kafka.log.TopicLog;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.message.MetadataRequestData;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponseBroker;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponseBrokerCollection;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponsePartition;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponseTopic;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponseTopicCollection;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Metadata: to a client there is one broker, the gateway it talks to, and that leads every
 * partition.
 */
final class MetadataHandler implements Apis.Handler {
  private static final String CLUSTER = "timebound";

  /** Partitions that are not led in terms of a leader's election have no epoch. */
  private static final int NO_EPOCH = -1;

  private final TopicLog log;
  private final GatewaySettings settings;

  MetadataHandler(TopicLog log, GatewaySettings settings) {
    this.log = log;
    this.settings = settings;
  }

  @Override
  public Mono<ApiMessage> apply(Call call, ApiMessage body) {
    MetadataRequestData request = (MetadataRequestData) body;
    if (asksForAll(call, request)) {
      return log.topics().map(topics -> answer(call, topics.keySet(), topics));
    }
    Set<String> names = new LinkedHashSet<>();
    request.topics().forEach(topic -> names.add(topic.name() == null ? "" : topic.name()));
    boolean create = settings.createTopics() && mayCreate(call, request);
    return found(names, create).map(topics -> answer(call, names, topics));
  }

  private static boolean asksForAll(Call call, MetadataRequestData request) {
    return request.topics() == null || (call.version() == 0 && request.topics().isEmpty());
  }

  private static boolean mayCreate(Call call, MetadataRequestData request) {
    return call.version() < 4 || request.allowAutoTopicCreation();
  }

  private Mono<Map<String, Integer>> found(Set<String> names, boolean create) {
    Set<String> valid = new LinkedHashSet<>(names);
    valid.removeIf(name -> !Names.isTopic(name));
    Mono<Map<String, Integer>> found = log.topics(valid);
    if (!create) {
      return found;
    }
    return found.flatMap(
        topics -> {
          Set<String> missing = new HashSet<>(valid);
          missing.removeAll(topics.keySet());
          return missing.isEmpty()
              ? Mono.just(topics)
              : Flux.fromIterable(missing)
                  .concatMap(name -> log.create(name, settings.partitions()))
                  .then(log.topics(valid));
        });
  }

  private ApiMessage answer(Call call, Set<String> names, Map<String, Integer> found) {
    Node node = call.session().self();
    MetadataResponseBrokerCollection brokers = new MetadataResponseBrokerCollection();
    brokers.add(
        new MetadataResponseBroker()
            .setNodeId(node.id())
            .setHost(node.host())
            .setPort(node.port()));
    MetadataResponseTopicCollection topics = new MetadataResponseTopicCollection();
    names.forEach(name -> topics.add(topic(name, found.get(name), node.id())));
    return new MetadataResponseData()
        .setClusterId(CLUSTER)
        .setControllerId(node.id())
        .setBrokers(brokers)
        .setTopics(topics);
  }

  private static MetadataResponseTopic topic(
      String name, @Nullable Integer partitions, int leader) {
    MetadataResponseTopic topic = new MetadataResponseTopic().setName(name);
    if (partitions == null) {
      Errors error =
          Names.isTopic(name) ? Errors.UNKNOWN_TOPIC_OR_PARTITION : Errors.INVALID_TOPIC_EXCEPTION;
      return topic.setErrorCode(error.code());
    }
    List<MetadataResponsePartition> all = new ArrayList<>();
    for (int partition = 0; partition < partitions; partition++) {
      all.add(
          new MetadataResponsePartition()
              .setPartitionIndex(partition)
              .setLeaderId(leader)
              .setLeaderEpoch(NO_EPOCH)
              .setReplicaNodes(List.of(leader))
              .setIsrNodes(List.of(leader)));
    }
    return topic.setPartitions(all);
  }
}
