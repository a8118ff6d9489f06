package cursor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/blob"
	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

func blobEntry(value string) *agentv1.BlobEntry {
	return &agentv1.BlobEntry{Id: cursorwire.BlobIDOf([]byte(value)).Bytes(), Value: []byte(value)}
}

func TestUploadKeepsBlobs(t *testing.T) {
	blobs := new(blob.Memory)
	h := newTestCalls(t, func(o *callsOptions) { o.Blobs = blobs })
	large := strings.Repeat("x", maxUnary+1)
	for i, codec := range bothCodecs {
		text := fmt.Sprint("text", i)
		m := &agentv1.UploadConversationBlobsRequest{ConversationId: "c", Blobs: []*agentv1.BlobEntry{blobEntry(text), blobEntry(""), blobEntry(large), blobEntry(text)}}
		answerCall(t, h, codec, pathUpload, m, new(agentv1.UploadConversationBlobsResponse))
		for _, want := range []string{text, "", large} {
			got, err := blobs.Get(t.Context(), cursorwire.BlobIDOf([]byte(want)).String())
			if err != nil || string(got) != want {
				t.Errorf("in %s: a blob of %d bytes: %d, %v", codec, len(want), len(got), err)
			}
		}
	}
}

func TestUploadRefusesWhatIsNotItsHash(t *testing.T) {
	blobs := new(blob.Memory)
	h := newTestCalls(t, func(o *callsOptions) { o.Blobs = blobs })
	for name, bad := range map[string]*agentv1.BlobEntry{
		"other content": {Id: blobEntry("a").Id, Value: []byte("b")},
		"no id":         {Value: []byte("b")},
		"short id":      {Id: []byte("short"), Value: []byte("b")},
	} {
		body, err := cursorwire.Proto.Append(nil, &agentv1.UploadConversationBlobsRequest{Blobs: []*agentv1.BlobEntry{blobEntry("good"), bad}})
		if err != nil {
			t.Fatal(err)
		}
		if w := askCall(t, h, cursorwire.Proto, pathUpload, body); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "blob 1") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if _, err := blobs.Get(t.Context(), blob.Hash([]byte("good"))); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("a part of a refused upload was kept: %v", err)
	}
}

// slowBlobs says when it is asked, and waits until it may answer.
type slowBlobs struct{ began, may chan struct{} }

func (s slowBlobs) Get(context.Context, string) ([]byte, error) { return nil, blob.ErrNotFound }

func (s slowBlobs) Put(ctx context.Context, _ []byte) (string, error) {
	s.began <- struct{}{}
	select {
	case <-s.may:
		return "", errors.New("disk of /secret/path is full")
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Uploads are in memory as a whole, so there are few at once. A failure of the disk tells a client
// nothing about it.
func TestUploadsAreBounded(t *testing.T) {
	slow := slowBlobs{began: make(chan struct{}), may: make(chan struct{})}
	h := newTestCalls(t, func(o *callsOptions) { o.Blobs = slow })
	body, err := cursorwire.Proto.Append(nil, &agentv1.UploadConversationBlobsRequest{Blobs: []*agentv1.BlobEntry{blobEntry("a")}})
	if err != nil {
		t.Fatal(err)
	}
	const uploads = 2 * maxUploads
	answers := make(chan string, uploads)
	for range uploads {
		go func() { answers <- askCall(t, h, cursorwire.Proto, pathUpload, body).Body.String() }()
	}
	for range maxUploads {
		<-slow.began
	}
	select {
	case <-slow.began:
		t.Error("one more is in memory")
	default:
	}
	for range maxUploads {
		slow.may <- struct{}{}
	}
	for range uploads - maxUploads {
		<-slow.began
		slow.may <- struct{}{}
	}
	for range uploads {
		if got := <-answers; !strings.Contains(got, `"internal"`) || strings.Contains(got, "secret") {
			t.Errorf("got %s", got)
		}
	}
}

func TestClone(t *testing.T) {
	for _, tc := range []struct {
		from, to string
		fails    error
		status   int
		calls    int
	}{
		{"a", "b", nil, 200, 1},
		{"a", "b", session.Errorf(session.NotFound, "no session"), 200, 1}, // nothing to copy yet
		{"a", "b", errors.New("disk"), 500, 1},
		{"../a", "b", nil, 400, 0},
		{"a", "", nil, 400, 0},
		{"a", strings.Repeat("b", 129), nil, 400, 0},
	} {
		var got []string
		h := newTestCalls(t, func(o *callsOptions) {
			o.Clone = func(_ context.Context, from, to string) error {
				got = append(got, from+" "+to)
				return tc.fails
			}
		})
		body, err := cursorwire.JSON.Append(nil, &agentv1.NotifyConversationCloneRequest{ConversationId: tc.to, SourceConversationId: tc.from})
		if err != nil {
			t.Fatal(err)
		}
		w := askCall(t, h, cursorwire.JSON, agentService+"NotifyConversationClone", body)
		if w.Code != tc.status || len(got) != tc.calls || tc.calls == 1 && got[0] != "a b" || strings.Contains(w.Body.String(), "disk") {
			t.Errorf("%+v: status %d, %s, calls %v", tc, w.Code, w.Body, got)
		}
	}
}

func TestRename(t *testing.T) {
	for _, tc := range []struct {
		request string
		named   bool
		want    string
	}{
		{`{"conversationId":"c","name":"A name"}`, true, "c A name"},
		{`{"conversationId":"c","name":"  A\tname \n and more","onlySetNameIfEmpty":true}`, false, "c A name"},
		{`{"conversationId":"c","name":"A name","onlySetNameIfEmpty":true}`, true, ""},
		{`{"conversationId":"c","name":"` + strings.Repeat("é", 500) + `"}`, false, "c " + strings.Repeat("é", maxTitle)},
		{`{"conversationId":"c","workspacePaths":["/w"]}`, false, ""},
		{`{"conversationId":"c","name":" "}`, false, ""},
	} {
		for _, fails := range []error{nil, errors.New("disk")} {
			var got string
			h := newTestCalls(t, func(o *callsOptions) {
				o.Rename = func(_ context.Context, id, name string) error {
					got = id + " " + name
					return fails
				}
				o.Named = func(_ context.Context, id string) bool { return id == "c" && tc.named }
			})
			w := askCall(t, h, cursorwire.JSON, agentService+"UpdateConversationMetadata", []byte(tc.request))
			if w.Code != http.StatusOK || w.Body.String() != "{}" || got != tc.want {
				t.Errorf("%s: status %d, %q", tc.request, w.Code, got)
			}
		}
	}
	if w := askCall(t, newTestCalls(t, nil), cursorwire.JSON, agentService+"UpdateConversationMetadata", []byte(`{"name":"x"}`)); w.Code != http.StatusBadRequest {
		t.Errorf("without a conversation: %d", w.Code)
	}
}
