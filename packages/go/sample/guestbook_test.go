package sample

import (
	"context"
	"reflect"
	"testing"

	"github.com/basalt-server/basalt/packages/go/basalttest"
)

// open returns a connection to an empty server of the test's own, with the table.
func open(t *testing.T) (*GuestBook, context.Context) {
	t.Helper()
	t.Parallel()
	book, err := Connect(basalttest.Start(t).Listen)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { book.Close() })
	if err := book.Create(context.Background()); err != nil {
		t.Fatal(err)
	}
	return book, context.Background()
}

func sign(t *testing.T, book *GuestBook, of string, millis int64, who string) {
	t.Helper()
	if added, err := book.Sign(context.Background(), of, millis, who); err != nil || !added {
		t.Fatal(added, err)
	}
}

func expect[T any](t *testing.T, expected, value T, err error) {
	t.Helper()
	if err != nil || !reflect.DeepEqual(expected, value) {
		t.Fatalf("expected %v, got %v, %v", expected, value, err)
	}
}

func TestNewestEntriesComeFirst(t *testing.T) {
	book, ctx := open(t)
	sign(t, book, "home", 1000, "ada")
	sign(t, book, "home", 3000, "grace")
	sign(t, book, "home", 2000, "mary")
	names, err := book.Latest(ctx, "home", 2)
	expect(t, []string{"grace", "mary"}, names, err)
}

func TestBooksAreApart(t *testing.T) {
	book, ctx := open(t)
	sign(t, book, "home", 1000, "ada")
	sign(t, book, "homework", 2000, "mary")
	names, err := book.Latest(ctx, "home", 10)
	expect(t, []string{"ada"}, names, err)
}

func TestOneEntryForEachTime(t *testing.T) {
	book, ctx := open(t)
	sign(t, book, "home", 1000, "ada")
	added, err := book.Sign(ctx, "home", 1000, "mary")
	expect(t, false, added, err)
	names, err := book.Latest(ctx, "home", 10)
	expect(t, []string{"ada"}, names, err)
}

func TestVisitsAreCounted(t *testing.T) {
	book, ctx := open(t)
	for number := int64(1); number <= 3; number++ {
		visits, err := book.Visit(ctx, "home")
		expect(t, number, visits, err)
	}
	visits, err := book.Visit(ctx, "other")
	expect(t, 1, visits, err)
}

func TestEraseRemovesEntriesAndKeepsVisits(t *testing.T) {
	book, ctx := open(t)
	for millis := int64(0); millis < 5; millis++ {
		sign(t, book, "home", millis, "ada")
	}
	if _, err := book.Visit(ctx, "home"); err != nil {
		t.Fatal(err)
	}
	erased, err := book.Erase(ctx, "home")
	expect(t, 5, erased, err)
	names, err := book.Latest(ctx, "home", 10)
	expect(t, []string{}, names, err)
	visits, err := book.Visit(ctx, "home")
	expect(t, 2, visits, err)
}
