package replay

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/roost-dev/roost/internal/cursorview"
)

// printCursor prints the checkpoint that a client of Cursor's protocol gets, and the blobs that it
// refers to, by their ids in base64 as they stand in the checkpoint.
func printCursor(_ context.Context, h *history, w io.Writer) error {
	var p cursorview.Projector
	c := p.Checkpoint(h.state, cursorview.Base{NowMS: h.state.CreatedAt})
	state, err := protojson.Marshal(c.State)
	if err != nil {
		return err
	}
	blobs := make(map[string]string, len(c.Blobs))
	for _, b := range c.Blobs {
		blobs[base64.StdEncoding.EncodeToString(b.ID.Bytes())] = base64.StdEncoding.EncodeToString(b.Data)
	}
	return encode(w, struct {
		Checkpoint json.RawMessage   `json:"checkpoint"`
		Blobs      map[string]string `json:"blobs"`
	}{json.RawMessage(state), blobs})
}
