package cursortool

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// imageMIME returns the type of a picture that models can see, as its bytes say, or "".
func imageMIME(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return "image/gif"
	case len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return "image/webp"
	default:
		return ""
	}
}

// imageName returns the type of a picture by its name, or "".
func imageName(name string) string {
	switch strings.ToLower(path.Ext(strings.ReplaceAll(name, `\`, "/"))) {
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".gif":
		return "image/gif"
	case ".webp":
		return "image/webp"
	default:
		return ""
	}
}

// data takes a file that is not text.
func (r *reader) data(ok *agentv1.ReadSuccess) Step {
	data := ok.GetData()
	mime := imageMIME(data)
	switch {
	case mime == "":
		return r.fail(fmt.Sprintf("%s is a binary file (%d bytes), it has no lines to read", r.path, len(data)))
	case len(data) > maxImage:
		return r.fail(fmt.Sprintf("the picture %s has %d bytes, more than the %d that can be shown: make a smaller copy", r.path, len(data), maxImage))
	}
	success := &agentv1.ReadToolSuccess{Output: &agentv1.ReadToolSuccess_Data{Data: data}}
	return r.image(fmt.Sprintf("[%s, %s, %d bytes]", r.path, mime, len(data)), success, ok, []Image{{MIME: mime, Data: data}})
}

// blob takes a file that the client has put aside. What kind of picture it is only its name says;
// whoever gets the bytes has to look at them.
func (r *reader) blob(ok *agentv1.ReadSuccess) Step {
	mime := imageName(r.path)
	switch {
	case mime == "":
		return r.fail("the client does not send the whole of " + r.path + " at once: read it in parts, with offset and limit")
	case ok.GetFileSize() > maxImage:
		return r.fail(fmt.Sprintf("the picture %s has %d bytes, more than the %d that can be shown: make a smaller copy", r.path, ok.GetFileSize(), maxImage))
	}
	id := ok.GetOutputBlobId()
	success := &agentv1.ReadToolSuccess{Output: &agentv1.ReadToolSuccess_DataBlobId{DataBlobId: id}}
	return r.image(fmt.Sprintf("[%s, %s, %d bytes]", r.path, mime, ok.GetFileSize()), success, ok, []Image{{MIME: mime, Blob: id}})
}
