package dev.timebound.demo.fetch;

/** The clients that read at the same time, each through a gateway of its own. */
enum Client {
  JAVA("Java"),
  KCAT("kcat");

  private final String title;

  Client(String title) {
    this.title = title;
  }

  String title() {
    return title;
  }
}
