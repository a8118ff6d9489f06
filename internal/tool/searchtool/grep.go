package searchtool

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/workspace"
)

const grepText = "Search the text of files with a regular expression. Matching lines are shown as path:line: text, lines around them as path-line- text. Binary files and what ignore files (.gitignore, .ignore) leave out are not searched; hidden files are."

const (
	grepLimit = 100 // lines shown unless asked otherwise
	lineLimit = 500 // bytes shown of one line
	workers   = 2
	ahead     = 64 // files that workers may be ahead of the result
)

type grepParams struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	IgnoreCase bool   `json:"ignoreCase"`
	Literal    bool   `json:"literal"`
	Context    int    `json:"context"`
	Limit      int    `json:"limit"`
}

// search is one grep.
type search struct {
	root  *workspace.Root
	re    *regexp.Regexp
	match func(rel string) bool
	in    grepParams
	limit int
	walk  walker
}

// job is one file to search. Its result comes when done is closed.
type job struct {
	name workspace.Name
	hits hits
	done chan struct{}
}

func grep(ctx context.Context, root *workspace.Root, in grepParams) (string, error) {
	re, err := expression(in)
	if err != nil {
		return "", err
	}
	match, err := filter(in.Glob)
	if err != nil {
		return "", fmt.Errorf("glob: %w", err)
	}
	start, err := root.Resolve(cmp.Or(in.Path, "."))
	if err != nil {
		return "", err
	}
	info, err := root.Lstat(start)
	if err != nil {
		return "", err
	}
	s := &search{root: root, re: re, match: match, in: in, limit: cmp.Or(in.Limit, grepLimit), walk: walker{root: root}}
	if info.IsDir() {
		return s.tree(ctx, start)
	}
	f, _, err := root.OpenFile(start) // to say why, when it cannot be searched
	if err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	found := report{limit: s.limit}
	found.add(s.file(ctx, newScanner(re), start))
	return found.text(""), nil
}

// tree searches everything below a directory. Files are searched at the same time, but the
// result is put together in the order of the walk, so it is the same every time.
func (s *search) tree(ctx context.Context, start workspace.Name) (string, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	todo, order := make(chan *job, ahead), make(chan *job, ahead)
	walked := make(chan error, 1)
	go func() {
		defer close(order)
		defer close(todo)
		s.walk.visit = func(e entry) error { return s.offer(ctx, e, todo, order) }
		walked <- s.walk.walk(ctx, start)
	}()
	ended := make(chan struct{}, workers)
	for range workers {
		go func() {
			sc := newScanner(s.re)
			for j := range todo {
				j.hits = s.file(ctx, sc, j.name)
				close(j.done)
			}
			ended <- struct{}{}
		}()
	}
	found := report{limit: s.limit}
	for j := range order {
		<-j.done
		if !found.full && !found.add(j.hits) {
			stop() // the walk and the workers end; what they have begun is passed over
		}
	}
	for range workers {
		<-ended
	}
	if err := <-walked; err != nil && !found.full {
		return "", err
	}
	return found.text(s.walk.missed()), nil
}

// offer hands a file to the workers.
func (s *search) offer(ctx context.Context, e entry, todo, order chan<- *job) error {
	if !e.mode.IsRegular() || !s.match(e.rel) {
		return nil
	}
	j := &job{name: e.name, done: make(chan struct{})}
	select {
	case order <- j:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	todo <- j // workers wait for nobody, so this does not wait for long
	return nil
}

// file searches one file. A file that cannot be read has no hits.
func (s *search) file(ctx context.Context, sc *scanner, name workspace.Name) hits {
	h := hits{path: tool.CleanName(filepath.ToSlash(s.root.Show(name))), context: s.in.Context}
	f, _, err := s.root.OpenFile(name)
	if err != nil {
		return h
	}
	stop := workspace.EndReads(ctx, f)
	err = sc.scan(ctx, f, func(number int, line []byte) bool {
		h.add(number, line)
		return len(h.lines) <= s.limit && h.size <= tool.MaxBytes
	})
	if err == nil && h.context > 0 && len(h.lines) > 0 {
		if _, err = f.Seek(0, 0); err == nil {
			err = h.surround(ctx, f)
		}
	}
	stop()
	if closeErr := f.Close(); err != nil || closeErr != nil {
		h.lines = nil
	}
	return h
}
