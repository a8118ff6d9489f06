package control

import (
	"context"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/roost-dev/roost/internal/prompt"
	"github.com/roost-dev/roost/internal/session"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// Limits of a prompt's attachments.
const (
	maxAttachments = 20
	maxImage       = 5 << 20  // bytes of a picture
	maxAttached    = 12 << 20 // bytes of a whole request
)

// pictures are the media types that models take.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// attach makes the blocks of a prompt with attachments: a picture goes into the blob store, a
// text into the message.
func (s *Server) attach(ctx context.Context, req *roostv1.PromptRequest) ([]session.Block, error) {
	if len(req.Attachments) > maxAttachments {
		return nil, session.Errorf(session.TooLarge, "a prompt has at most %d attachments", maxAttachments)
	}
	var (
		files  []prompt.File
		images []session.Image
	)
	for _, a := range req.Attachments {
		kind := http.DetectContentType(a.Data)
		switch {
		case slices.Contains(pictures, kind) && len(a.Data) <= maxImage:
			hash, err := s.opt.Blobs.Put(ctx, a.Data)
			if err != nil {
				return nil, err
			}
			images = append(images, session.Image{MIME: kind, Blob: hash, Size: int64(len(a.Data))})
		case slices.Contains(pictures, kind):
			return nil, session.Errorf(session.TooLarge, "%q: a picture has at most %d MiB", a.Name, maxImage>>20)
		case utf8.Valid(a.Data):
			files = append(files, prompt.File{Path: a.Name, Text: string(a.Data)})
		default:
			return nil, session.Errorf(session.Invalid, "%q is neither text nor a PNG, JPEG, GIF or WebP picture", a.Name)
		}
	}
	return prompt.Message(req.Text, files, images), nil
}
