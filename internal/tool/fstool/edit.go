package fstool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/workspace"
)

const editText = "Change parts of a file. Each oldText must occur exactly once in the file as it is now, and the parts must not overlap; keep oldText short but unique. Make all changes of one file in one call."

// maxEdit is the size of files that are edited; larger ones are no source text.
const maxEdit = 10 << 20

type editParams struct {
	Path  string        `json:"path"`
	Edits []replacement `json:"edits"`
}

type replacement struct {
	OldText string `json:"oldText"`
	NewText string `json:"newText"`
}

// tidyEdits brings the forms in which models write edits into the one of the schema: the
// array as a JSON string, one edit without an array, or its texts beside the path.
func tidyEdits(input json.RawMessage) json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(input, &m) != nil {
		return input
	}
	edits := m["edits"]
	var text string
	if json.Unmarshal(edits, &text) == nil && json.Valid([]byte(text)) {
		edits = json.RawMessage(text)
	}
	if strings.HasPrefix(strings.TrimSpace(string(edits)), "{") {
		edits = slices.Concat(json.RawMessage("["), edits, json.RawMessage("]"))
	}
	if old, ok := m["oldText"]; ok && (len(edits) == 0 || string(edits) == "null" || string(edits) == "[]") {
		one, err := json.Marshal([]map[string]json.RawMessage{{"oldText": old, "newText": m["newText"]}})
		if err != nil {
			return input
		}
		edits = one
		delete(m, "oldText")
		delete(m, "newText")
	}
	if edits != nil {
		m["edits"] = edits
	}
	out, err := json.Marshal(m)
	if err != nil {
		return input
	}
	return out
}

type editor struct{ queue *queue }

func (e *editor) run(ctx context.Context, root *workspace.Root, in editParams) (tool.Result, error) {
	name, err := root.Resolve(in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	leave, err := e.queue.enter(ctx, root.Real(name))
	if err != nil {
		return tool.Result{}, err
	}
	defer leave()
	path := tool.CleanName(root.Show(name))
	before, err := readWhole(ctx, root, name)
	if err != nil {
		return tool.Result{}, err
	}
	after, loose, err := apply(ctx, before, in.Edits)
	if err != nil {
		return tool.Result{}, fmt.Errorf("%s was not changed: %w", path, err)
	}
	if err := root.Replace(name, []byte(after)); err != nil {
		return tool.Result{}, err
	}
	text := fmt.Sprintf("Replaced %s in %s.", count(len(in.Edits), "part"), path)
	if loose > 0 {
		text += fmt.Sprintf(" %d of them matched only when quotes, dashes, spaces and blanks at line ends were taken as equal.", loose)
	}
	return tool.Result{Text: text, Details: details(path, before, after)}, nil
}

func readWhole(ctx context.Context, root *workspace.Root, name workspace.Name) (text string, err error) {
	f, info, err := root.OpenFile(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	defer workspace.EndReads(ctx, f)()
	path := root.Show(name)
	data, err := io.ReadAll(io.LimitReader(f, maxEdit+1))
	switch {
	case err != nil:
		return "", unreadable(path, err)
	case len(data) > maxEdit:
		return "", fmt.Errorf("%s has %s; files of up to %s can be edited. Use bash, for example with sed", path, tool.Size(info.Size()), tool.Size(maxEdit))
	case isBinary(data):
		return "", fmt.Errorf("%s is a binary file, which cannot be edited as text. Use bash", path)
	}
	return string(data), nil
}

// extent is a part of a text.
type extent struct{ start, end int }

// change is a replacement whose place is known.
type change struct {
	extent
	text  string
	index int // of the edit, from 1, for messages
}

const bom = "\uFEFF"

// apply returns the text with all edits made, and how many of them matched only loosely. All
// are looked up in the text as it is; other bytes than theirs do not change.
func apply(ctx context.Context, text string, edits []replacement) (after string, loose int, err error) {
	body := strings.TrimPrefix(text, bom)
	end := lineEnd(body)
	strict, relaxed := lineView(body), (*view)(nil)
	changes := make([]change, 0, len(edits))
	for i, e := range edits {
		if ctx.Err() != nil {
			return "", 0, context.Cause(ctx)
		}
		want := unixLines(strings.TrimPrefix(e.OldText, bom))
		if want == "" {
			return "", 0, fmt.Errorf("edit %d: oldText is empty; give the text to replace", i+1)
		}
		found := strict.find(want)
		if len(found) == 0 {
			if relaxed == nil {
				relaxed = looseView(body)
			}
			if want = looseView(want).text; want != "" {
				found = relaxed.find(want)
			}
			loose++
		}
		switch len(found) {
		case 0:
			return "", 0, fmt.Errorf("edit %d: oldText was not found; read the file again and copy the text exactly", i+1)
		case 1:
			changes = append(changes, change{found[0], withLines(e.NewText, end), i + 1})
		default:
			return "", 0, fmt.Errorf("edit %d: oldText occurs more than once; add lines before or after it until it is unique", i+1)
		}
	}
	after, err = splice(body, changes)
	if err == nil && after == body {
		err = errors.New("the new text equals the old one")
	}
	return text[:len(text)-len(body)] + after, loose, err
}

// splice returns the text with the changes made.
func splice(text string, changes []change) (string, error) {
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.start, b.start) })
	var out strings.Builder
	at := 0
	for i, c := range changes {
		if c.start < at {
			return "", fmt.Errorf("edits %d and %d overlap; make them one edit", changes[i-1].index, c.index)
		}
		out.WriteString(text[at:c.start])
		out.WriteString(c.text)
		at = c.end
	}
	out.WriteString(text[at:])
	return out.String(), nil
}

// lineEnd returns the line end that most lines of the text have.
func lineEnd(text string) string {
	if crlf := strings.Count(text, "\r\n"); crlf > 0 && 2*crlf >= strings.Count(text, "\n") {
		return "\r\n"
	}
	return "\n"
}

func unixLines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

func withLines(text, end string) string {
	return strings.ReplaceAll(unixLines(text), "\n", end)
}
