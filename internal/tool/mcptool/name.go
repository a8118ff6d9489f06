package mcptool

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// maxName is the length of a tool's name that every provider takes.
const maxName = 64

// part is a name that can be a part of a tool's name as it is. "__" separates the parts, so
// a part with that, or with "_" at its edges, would make two tools look the same.
var part = regexp.MustCompile(`^[a-zA-Z0-9-]+(_[a-zA-Z0-9-]+)*$`)

var notInNames = regexp.MustCompile(`[^a-zA-Z0-9-]+`)

// toolName returns the name under which models call a server's tool: mcp__SERVER__TOOL, of
// 1 to 64 letters, digits, "_" and "-". Names that do not fit are shortened, and end with a
// digest of both so that they stay different. A tool's name depends on nothing else, so
// that old conversations keep their meaning when servers come and go.
func toolName(server, remote string) string {
	name := "mcp__" + server + "__" + remote
	if len(name) <= maxName && part.MatchString(server) && part.MatchString(remote) {
		return name
	}
	sum := sha256.Sum256([]byte(server + "\x00" + remote))
	digest := "__" + hex.EncodeToString(sum[:5])
	plain := func(s string) string { return strings.Trim(notInNames.ReplaceAllString(s, "_"), "_") }
	name = "mcp__" + plain(server) + "__" + plain(remote)
	return name[:min(len(name), maxName-len(digest))] + digest
}
