package cursorview

import (
	"encoding/hex"
	"strings"

	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// hiddenThinking is shown in place of reasoning that a provider keeps to itself, so that a client
// shows that there was some (section 4.2, rule 3).
const hiddenThinking = "The model's reasoning is encrypted."

// ownPrompt begins the ids of prompts that no client chose as the id of a message.
const ownPrompt = "run:"

// userMessage returns a message of the person as clients know it. Its images are named by their
// blobs.
func userMessage(u *session.User, mode agentv1.AgentMode) *agentv1.UserMessage {
	m := &agentv1.UserMessage{Text: userText(u.Blocks), MessageId: messageID(u.Prompt, u.ID), Mode: mode}
	for _, b := range u.Blocks {
		img, ok := b.(session.Image)
		if !ok {
			continue
		}
		id, ok := imageID(img)
		if !ok {
			continue
		}
		if m.SelectedContext == nil {
			m.SelectedContext = &agentv1.SelectedContext{}
		}
		m.SelectedContext.SelectedImages = append(m.SelectedContext.SelectedImages, &agentv1.SelectedImage{
			DataOrBlobId: &agentv1.SelectedImage_BlobId{BlobId: id.Bytes()}, Uuid: id.String(), MimeType: img.MIME,
		})
	}
	return m
}

func messageID(prompt string, item session.ItemID) string {
	if prompt == "" || strings.HasPrefix(prompt, ownPrompt) {
		return string(item)
	}
	return prompt
}

// userText returns what a person has written, without the images.
func userText(blocks []session.Block) string {
	var text strings.Builder
	for _, b := range blocks {
		text.WriteString(session.BlockText(b))
	}
	return text.String()
}

// imageID returns the blob id of a picture: both sides name a blob by the SHA-256 of its bytes.
func imageID(img session.Image) (cursorwire.BlobID, bool) {
	raw, err := hex.DecodeString(img.Blob)
	if err != nil {
		return cursorwire.BlobID{}, false
	}
	return cursorwire.ParseBlobID(raw)
}

// update wraps an interaction update.
func update(u *agentv1.InteractionUpdate) *agentv1.AgentServerMessage {
	return &agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_InteractionUpdate{InteractionUpdate: u}}
}
