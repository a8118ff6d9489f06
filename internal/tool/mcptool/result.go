package mcptool

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/roost-dev/roost/internal/tool"
)

const (
	maxImages   = 8       // of one result
	maxContents = 1000    // parts of one result
	maxSpill    = 8 << 20 // bytes of text in the file of an output that is too long
)

// pictures are the kinds of images that providers take.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// gathering puts the parts of a result together.
type gathering struct {
	texts  []string
	images []tool.Image
}

// callResult turns a server's answer into a tool's result: texts below each other, images
// beside them, what a model cannot read as a note.
func callResult(res *mcp.CallToolResult, maxOutput int, outputDir string) tool.Result {
	var g gathering
	for i, c := range res.Content {
		if i == maxContents {
			g.note("%d more parts were left out", len(res.Content)-i)
			break
		}
		g.add(c)
	}
	out := tool.Result{IsError: res.IsError}
	structured := encodeStructured(res.StructuredContent)
	if len(g.texts) == 0 && structured != nil {
		g.texts = append(g.texts, clean(string(structured)))
	}
	if details := `{"structuredContent":` + string(structured) + `}`; structured != nil && len(details) <= tool.MaxDetails {
		out.Details = json.RawMessage(details)
	}
	out.Text, out.Images = fit(strings.Join(g.texts, "\n"), maxOutput, outputDir), g.images
	if out.Text == "" && len(out.Images) == 0 {
		out.Text = "[the tool returned nothing]"
	}
	return out
}

func encodeStructured(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return data
}

// note adds a remark of roost's own.
func (g *gathering) note(format string, args ...any) {
	g.texts = append(g.texts, "["+fmt.Sprintf(format, args...)+"]")
}

func (g *gathering) add(c mcp.Content) {
	switch c := c.(type) {
	case *mcp.TextContent:
		g.texts = append(g.texts, clean(c.Text))
	case *mcp.ImageContent:
		g.image(c.Data)
	case *mcp.AudioContent:
		g.note("audio of %s, %s, was left out", tool.Size(int64(len(c.Data))), cleanLine(c.MIMEType, 100))
	case *mcp.ResourceLink:
		g.note("resource %s: %s", cleanLine(c.URI, 1000), cleanLine(c.Name+" "+c.Description, 500))
	case *mcp.EmbeddedResource:
		if c.Resource != nil {
			g.resource(c.Resource)
		}
	case nil:
	default:
		g.note("a part of an unknown kind was left out")
	}
}

// image adds a picture. What it is says its content, not the server.
func (g *gathering) image(data []byte) {
	kind := http.DetectContentType(data)
	switch {
	case !slices.Contains(pictures, kind):
		g.note("an image of an unknown kind was left out")
	case len(data) > tool.MaxImage:
		g.note("an image of %s was left out; at most %s are taken", tool.Size(int64(len(data))), tool.Size(tool.MaxImage))
	case len(g.images) == maxImages:
		g.note("an image was left out; at most %d are taken", maxImages)
	default:
		g.images = append(g.images, tool.Image{MIME: kind, Data: data})
	}
}

func (g *gathering) resource(r *mcp.ResourceContents) {
	uri := cleanLine(r.URI, 1000)
	switch {
	case r.Blob == nil:
		g.texts = append(g.texts, "["+uri+"]", clean(r.Text))
	case strings.HasPrefix(http.DetectContentType(r.Blob), "image/"):
		g.note("%s", uri)
		g.image(r.Blob)
	default:
		g.note("%s: %s of %s were left out", uri, tool.Size(int64(len(r.Blob))), cleanLine(r.MIMEType, 100))
	}
}

// fit cuts text to at most limit bytes and tool.MaxLines lines, with a notice that says
// where all of it is.
func fit(text string, limit int, dir string) string {
	limit = min(limit, tool.MaxBytes)
	kept := text
	if i := nthLine(kept, tool.MaxLines); i >= 0 {
		kept = kept[:i]
	}
	if len(kept) > limit {
		kept = tool.Cut(kept, limit)
	}
	if len(kept) == len(text) {
		return text
	}
	return tool.Notice(kept, fmt.Sprintf("Showing the first %s of %s. %s", tool.Size(int64(len(kept))), tool.Size(int64(len(text))), spill(text, dir)))
}

// nthLine returns where the n-th line of s ends, or -1 when it has no further line.
func nthLine(s string, n int) int {
	at := -1
	for range n {
		i := strings.IndexByte(s[at+1:], '\n')
		if i < 0 {
			return -1
		}
		at += 1 + i
	}
	return at
}

// spill keeps the whole text in a file of the session and says where.
func spill(text, dir string) string {
	if dir == "" {
		return "Ask for less at a time."
	}
	f, err := os.CreateTemp(dir, "mcp-*.txt") // made with mode 0600
	if err != nil {
		return "The rest could not be kept: " + err.Error()
	}
	_, err = f.WriteString(tool.Cut(text, maxSpill))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return "The rest could not be kept: " + err.Error()
	}
	return "Full output: " + f.Name()
}
