package basalt.host;

/** A class that was loaded from a jar of the user: its name, the jar, and the jar's SHA-256. */
public record Loaded(String name, String jar, String digest) {}
