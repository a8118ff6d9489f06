package prompt

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/roost-dev/roost/internal/session"
)

// Limits on the files attached to one message, in bytes. A cut is marked in the text.
const (
	MaxAttached    = 64 << 10  // of one file
	MaxAttachments = 256 << 10 // of all
)

// File is a file, or some lines of one, that a user attached to a message.
type File struct {
	Path string
	Text string
	From int // the number of the first line in the file, from 1; 0 for a whole file
}

// Message returns the blocks of a user's message: what the user wrote, word for word, then
// the files, each as a block of text with its path, then the images.
func Message(text string, files []File, images []session.Image) []session.Block {
	var blocks []session.Block
	if text != "" {
		blocks = append(blocks, session.Text{Text: text})
	}
	left := MaxAttachments
	for _, f := range files {
		blocks = append(blocks, session.Text{Text: attached(f, min(left, MaxAttached))})
		left -= min(left, len(f.Text), MaxAttached)
	}
	for _, img := range images {
		blocks = append(blocks, img)
	}
	return blocks
}

func attached(f File, limit int) string {
	text := strings.ToValidUTF8(f.Text, "\uFFFD")
	cut := ""
	if len(text) > limit {
		text = head(text, limit)
		cut = fmt.Sprintf("[The attachment has %d bytes; only the first %d are shown. Read the file for the rest.]\n", len(f.Text), len(text))
	}
	where := ""
	if f.From > 0 {
		where = fmt.Sprintf(", from line %d", f.From)
	}
	return fmt.Sprintf("Attached file %s%s:\n%s%s", oneLine(f.Path), where, fenced(text), cut)
}

// head returns at most limit bytes of s, and no half character.
func head(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// unseen is what a model without eyes reads in place of an image.
const unseen = "[an image, which this model cannot see]"

// withoutImages returns items with text in place of their images.
func withoutImages(items []session.Item) []session.Item {
	items = slices.Clone(items)
	for i, it := range items {
		switch it := it.(type) {
		case *session.User:
			if slices.ContainsFunc(it.Blocks, isImage) {
				u := *it
				u.Blocks = slices.Clone(it.Blocks)
				for j, b := range u.Blocks {
					if isImage(b) {
						u.Blocks[j] = session.Text{Text: unseen}
					}
				}
				items[i] = &u
			}
		case *session.Tool:
			if len(it.Images) > 0 {
				t := *it
				t.Images = nil
				t.Output = strings.TrimPrefix(t.Output+strings.Repeat("\n"+unseen, len(it.Images)), "\n")
				items[i] = &t
			}
		case *session.Assistant: // has none
		}
	}
	return items
}

func isImage(b session.Block) bool {
	_, ok := b.(session.Image)
	return ok
}
