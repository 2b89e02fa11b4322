package dev.timebound.samples.kafka;

import dev.timebound.deadline.Deadlines;
import dev.timebound.samples.kafka.group.GroupCoordinator;
import dev.timebound.samples.kafka.group.GroupHome;
import dev.timebound.samples.kafka.group.JoinAnswer;
import dev.timebound.samples.kafka.group.JoinRequest;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.common.message.FindCoordinatorRequestData;
import org.apache.kafka.common.message.FindCoordinatorResponseData;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.HeartbeatResponseData;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.JoinGroupResponseData.JoinGroupResponseMember;
import org.apache.kafka.common.message.LeaveGroupRequestData;
import org.apache.kafka.common.message.LeaveGroupResponseData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.FindCoordinatorRequest.CoordinatorType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Mono;

/**
 * The requests by which consumers share a topic's partitions. The versions end where a member may
 * name its own instance, which is not offered.
 */
final class GroupHandlers {
  private static final Logger LOG = LoggerFactory.getLogger(GroupHandlers.class);
  private static final Duration LEAST_SESSION = Duration.ofSeconds(1);
  private static final Duration MOST_SESSION = Duration.ofMinutes(30);
  private static final short ID_FIRST = 4;

  private final GroupCoordinator groups;
  private final GroupHome home;
  private final Duration time;

  GroupHandlers(GroupCoordinator groups, GroupHome home, Duration time) {
    this.groups = groups;
    this.home = home;
    this.time = time;
  }

  void serveIn(Apis apis) {
    apis.serve(ApiKeys.FIND_COORDINATOR, 0, 3, this::find)
        .serve(ApiKeys.JOIN_GROUP, 2, 4, this::join)
        .serve(ApiKeys.SYNC_GROUP, 0, 2, this::sync)
        .serve(ApiKeys.HEARTBEAT, 0, 2, this::heartbeat)
        .serve(ApiKeys.LEAVE_GROUP, 0, 2, this::leave);
  }

  private Mono<ApiMessage> find(Call call, ApiMessage body) {
    FindCoordinatorRequestData request = (FindCoordinatorRequestData) body;
    if (request.keyType() == CoordinatorType.TRANSACTION.id()) {
      // which its producer takes for final, as it asks no more
      return Mono.error(Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.exception());
    }
    if (request.keyType() != CoordinatorType.GROUP.id()) {
      return Mono.error(Errors.INVALID_REQUEST.exception("only groups have a coordinator here"));
    }
    if (!Names.isGroup(request.key())) {
      return Mono.error(Errors.INVALID_GROUP_ID.exception());
    }
    return home.of(request.key(), call.session().self())
        .<ApiMessage>map(
            node ->
                new FindCoordinatorResponseData()
                    .setNodeId(node.id())
                    .setHost(node.host())
                    .setPort(node.port()))
        .transform(Deadlines.within(time))
        .onErrorResume(
            error -> {
              LOG.warn("No coordinator for group {}: {}", request.key(), error.toString());
              return Mono.error(Errors.COORDINATOR_NOT_AVAILABLE.exception());
            });
  }

  private Mono<ApiMessage> join(Call call, ApiMessage body) {
    JoinGroupRequestData request = (JoinGroupRequestData) body;
    Duration session = Duration.ofMillis(request.sessionTimeoutMs());
    if (!Names.isGroup(request.groupId())) {
      return Mono.just(answer(refused(Errors.INVALID_GROUP_ID, request)));
    }
    if (!home.isHere(request.groupId())) {
      return Mono.just(answer(refused(Errors.NOT_COORDINATOR, request)));
    }
    if (session.compareTo(LEAST_SESSION) < 0 || session.compareTo(MOST_SESSION) > 0) {
      return Mono.just(answer(refused(Errors.INVALID_SESSION_TIMEOUT, request)));
    }
    Map<String, byte[]> protocols = new LinkedHashMap<>();
    request.protocols().forEach(each -> protocols.put(each.name(), each.metadata()));
    JoinRequest join =
        new JoinRequest(
            request.memberId(),
            call.clientId(),
            call.version() >= ID_FIRST,
            session,
            Duration.ofMillis(Math.max(0, request.rebalanceTimeoutMs())),
            request.protocolType(),
            protocols);
    return groups.join(request.groupId(), join).map(GroupHandlers::answer);
  }

  private static JoinAnswer refused(Errors error, JoinGroupRequestData request) {
    return new JoinAnswer(error, -1, "", "", request.memberId(), Map.of());
  }

  private static ApiMessage answer(JoinAnswer answer) {
    return new JoinGroupResponseData()
        .setErrorCode(answer.error().code())
        .setGenerationId(answer.generation())
        .setProtocolName(answer.protocol())
        .setLeader(answer.leader())
        .setMemberId(answer.memberId())
        .setMembers(
            answer.members().entrySet().stream()
                .map(
                    member ->
                        new JoinGroupResponseMember()
                            .setMemberId(member.getKey())
                            .setMetadata(member.getValue()))
                .toList());
  }

  private Mono<ApiMessage> sync(Call call, ApiMessage body) {
    SyncGroupRequestData request = (SyncGroupRequestData) body;
    if (!home.isHere(request.groupId())) {
      return Mono.error(Errors.NOT_COORDINATOR.exception());
    }
    Map<String, byte[]> assignments = new HashMap<>();
    request.assignments().forEach(each -> assignments.put(each.memberId(), each.assignment()));
    return groups
        .sync(request.groupId(), request.memberId(), request.generationId(), assignments)
        .map(
            answer ->
                new SyncGroupResponseData()
                    .setErrorCode(answer.error().code())
                    .setAssignment(answer.assignment()));
  }

  private Mono<ApiMessage> heartbeat(Call call, ApiMessage body) {
    HeartbeatRequestData request = (HeartbeatRequestData) body;
    if (!home.isHere(request.groupId())) {
      return Mono.error(Errors.NOT_COORDINATOR.exception());
    }
    return groups
        .heartbeat(request.groupId(), request.memberId(), request.generationId())
        .map(error -> new HeartbeatResponseData().setErrorCode(error.code()));
  }

  private Mono<ApiMessage> leave(Call call, ApiMessage body) {
    LeaveGroupRequestData request = (LeaveGroupRequestData) body;
    if (!home.isHere(request.groupId())) {
      return Mono.error(Errors.NOT_COORDINATOR.exception());
    }
    return groups
        .leave(request.groupId(), request.memberId())
        .map(error -> new LeaveGroupResponseData().setErrorCode(error.code()));
  }
}
