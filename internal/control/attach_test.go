package control_test

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/control/controltest"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"

func TestAttachments(t *testing.T) {
	r := controltest.Start(t, nil)
	c := r.Client
	created, err := c.Create(t.Context(), &roostv1.CreateSessionRequest{Cwd: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	id := created.Session.Id
	many := make([]*roostv1.Attachment, 21)
	for i := range many {
		many[i] = &roostv1.Attachment{Name: "x", Data: []byte("x")}
	}
	for name, refused := range map[string]struct {
		attached []*roostv1.Attachment
		kind     client.Kind
	}{
		"neither text nor picture": {[]*roostv1.Attachment{{Name: "a.bin", Data: []byte("\xff\xfe\x00\x01")}}, client.Invalid},
		"a picture too large":      {[]*roostv1.Attachment{{Name: "a.png", Data: []byte(png + strings.Repeat("x", 5<<20))}}, client.TooLarge},
		"too many":                 {many, client.TooLarge},
		"too much text":            {[]*roostv1.Attachment{{Name: "a", Data: []byte(strings.Repeat("x", 64<<10))}, {Name: "b", Data: []byte(strings.Repeat("x", 64<<10))}, {Name: "c", Data: []byte(strings.Repeat("x", 64<<10))}, {Name: "d", Data: []byte(strings.Repeat("x", 64<<10))}}, client.TooLarge},
	} {
		if _, err := c.Prompt(t.Context(), id, "", "look", refused.attached...); client.KindOf(err) != refused.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
	p, err := c.Prompt(t.Context(), id, "", "look at these",
		&roostv1.Attachment{Name: "notes.txt", Data: []byte("remember the milk")}, &roostv1.Attachment{Name: "shot.png", Data: []byte(png)})
	if err != nil {
		t.Fatal(err)
	}
	_, items, err := c.Transcript(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range items {
		if item.Id != p.ItemId {
			continue
		}
		blocks := item.GetUser().Blocks
		if len(blocks) != 3 || client.BlockText(blocks[0]) != "look at these" || !strings.Contains(client.BlockText(blocks[1]), "notes.txt") || !strings.Contains(client.BlockText(blocks[1]), "remember the milk") {
			t.Fatalf("blocks %v", blocks)
		}
		image := blocks[2].GetImage()
		if image.GetBlob() == "" || image.GetSize() != int64(len(png)) || image.GetMime() != "image/png" {
			t.Errorf("the picture is %v", image)
		}
		return
	}
	t.Errorf("no message %s in %v", p.ItemId, items)
}
