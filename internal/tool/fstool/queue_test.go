package fstool

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestQueueGivesTurnsByFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		leave, err := q.enter(t.Context(), "/a")
		if err != nil {
			t.Fatal(err)
		}
		other, err := q.enter(t.Context(), "/b")
		if err != nil {
			t.Fatal(err)
		}
		other()
		ctx, cancel := context.WithCancel(t.Context())
		quit, got := make(chan error, 1), make(chan func(), 1)
		go func() { _, err := q.enter(ctx, "/a"); quit <- err }()
		synctest.Wait()
		go func() { next, _ := q.enter(t.Context(), "/a"); got <- next }()
		synctest.Wait()
		if len(got)+len(quit) != 0 {
			t.Error("two have the file")
		}
		cancel()
		if err := <-quit; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		leave()
		(<-got)()
		if len(q.files) != 0 {
			t.Errorf("%d files are still known", len(q.files))
		}
	})
}
