package sqlitelog

import "context"

// Exec runs SQL on the writer's connection, between its transactions.
func (l *Log) Exec(query string, args ...any) error {
	return l.write(context.Background(), 0, func(w *writer) error {
		if _, err := w.stmt.commit.ExecContext(context.Background()); err != nil {
			return err
		}
		_, err := w.conn.ExecContext(context.Background(), query, args...)
		if _, begin := w.stmt.begin.ExecContext(context.Background()); begin != nil {
			return begin
		}
		clear(w.cache)
		return err
	})
}

// Count returns the one number that a query yields, once the writer has nothing to sweep, now
// or when it recovers from a failure.
func (l *Log) Count(query string) (n int, err error) {
	for busy := true; busy && err == nil; {
		err = l.write(context.Background(), 0, func(w *writer) error {
			busy = w.garbage || w.stalled
			return w.conn.QueryRowContext(context.Background(), query).Scan(&n)
		})
	}
	return n, err
}

// Hold stops the writer until the function it returns is called.
func (l *Log) Hold() (release func()) {
	held, released := make(chan struct{}), make(chan struct{})
	go func() {
		_ = l.write(context.Background(), 0, func(*writer) error {
			select {
			case <-held:
			default:
				close(held)
			}
			<-released
			return nil
		})
	}()
	<-held
	return func() { close(released) }
}

// Waiting returns how many requests wait for the writer.
func (l *Log) Waiting() int { return len(l.writer.requests) }

// Fail is a request that ends with an error, as if its statements had failed.
func (l *Log) Fail(err error) error {
	return l.write(context.Background(), 0, func(*writer) error { return err })
}
