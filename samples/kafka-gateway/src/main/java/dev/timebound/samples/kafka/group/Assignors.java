package dev.timebound.samples.kafka.group;

import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/** Which assignor the members of a group have in common. */
final class Assignors {
  private Assignors() {}

  /** Whether a group that has these members can take one with this request, or keep it. */
  static boolean agree(JoinRequest request, Collection<Member> members) {
    return !request.protocolType().isEmpty()
        && others(request, members).stream()
            .allMatch(other -> other.request.protocolType().equals(request.protocolType()))
        && !common(request, others(request, members)).isEmpty();
  }

  private static Collection<Member> others(JoinRequest request, Collection<Member> members) {
    return members.stream().filter(member -> !member.id.equals(request.memberId())).toList();
  }

  /**
   * The one that most members like best, of those that all of them have.
   *
   * @param members at least one
   */
  static String vote(Collection<Member> members) {
    Set<String> common = common(members.iterator().next().request, members);
    return members.stream()
        .flatMap(m -> m.request.protocols().keySet().stream().filter(common::contains).limit(1))
        .collect(Collectors.groupingBy(name -> name, LinkedHashMap::new, Collectors.counting()))
        .entrySet()
        .stream()
        .max(Map.Entry.comparingByValue())
        .map(Map.Entry::getKey)
        .orElse("");
  }

  private static Set<String> common(JoinRequest request, Collection<Member> members) {
    Set<String> common = new HashSet<>(request.protocols().keySet());
    members.forEach(member -> common.retainAll(member.request.protocols().keySet()));
    return common;
  }
}
