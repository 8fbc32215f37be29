package basalt.sample;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import basalt.junit.BasaltTest;
import java.io.IOException;
import java.util.List;
import org.apache.hadoop.hbase.client.Connection;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

@BasaltTest
class GuestBookTest {
  private GuestBook book;

  @BeforeEach
  void create(Connection connection) throws IOException {
    book = GuestBook.create(connection);
  }

  @Test
  void newestEntriesComeFirst() throws IOException {
    assertTrue(book.sign("home", 1_000, "ada", "hello"));
    assertTrue(book.sign("home", 3_000, "grace", "hello"));
    assertTrue(book.sign("home", 2_000, "mary", "hello"));
    assertEquals(List.of("grace", "mary"), book.latest("home", 2));
  }

  @Test
  void booksAreApart() throws IOException {
    book.sign("home", 1_000, "ada", "hello");
    book.sign("homework", 2_000, "mary", "done");
    assertEquals(List.of("ada"), book.latest("home", 10));
  }

  @Test
  void oneEntryForEachTime() throws IOException {
    assertTrue(book.sign("home", 1_000, "ada", "first"));
    assertFalse(book.sign("home", 1_000, "mary", "second"));
    assertEquals(List.of("ada"), book.latest("home", 10));
  }

  @Test
  void visitsAreCounted() throws IOException {
    for (long number = 1; number <= 3; number++) {
      assertEquals(number, book.visit("home"));
    }
    assertEquals(1, book.visit("other"));
  }

  @Test
  void eraseRemovesEntriesAndKeepsVisits() throws IOException {
    for (int millis = 0; millis < 5; millis++) {
      book.sign("home", millis, "ada", "hello");
    }
    book.visit("home");
    assertEquals(5, book.erase("home"));
    assertEquals(List.of(), book.latest("home", 10));
    assertEquals(2, book.visit("home"));
  }
}
