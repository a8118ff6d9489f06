package cursortool

import (
	"path"
	"strings"
)

// resolve returns name as an absolute path in the notation of a client whose workspace is root. A
// name that is absolute in any notation is returned as it is, and so is every name when the root is
// not known: then the client resolves it.
func resolve(root, name string) string {
	if root == "" || name == "" || absolute(name) {
		return name
	}
	if windows(root) {
		return resolveWindows(root, name)
	}
	return path.Join(root, name)
}

// absolute reports whether name is absolute: /x, C:\x, C:/x, \\server\share, //server/share and
// \\?\C:\x are; C: and C:x, which depend on the drive's current directory, are not.
func absolute(name string) bool {
	if strings.HasPrefix(name, "/") || strings.HasPrefix(name, `\\`) {
		return true
	}
	return len(name) >= 3 && drive(name) && (name[2] == '\\' || name[2] == '/')
}

// windows reports whether root is a path of Windows.
func windows(root string) bool {
	return drive(root) || strings.HasPrefix(root, `\\`)
}

func drive(name string) bool {
	if len(name) < 2 || name[1] != ':' {
		return false
	}
	c := name[0] | 0x20
	return c >= 'a' && c <= 'z'
}

// resolveWindows joins with backslashes. A name that begins with one is absolute on the root's own
// drive, and C:x can only be left to the client.
func resolveWindows(root, name string) string {
	if drive(name) {
		return name
	}
	slashed := strings.ReplaceAll(root, `\`, "/")
	volume, rest := "", slashed
	if drive(root) {
		volume, rest = slashed[:2], slashed[2:]
	} else if i := strings.IndexByte(slashed[2:], '/'); i >= 0 { // \\server\share, or \\?\C:
		if j := strings.IndexByte(slashed[i+3:], '/'); j >= 0 {
			volume, rest = slashed[:i+3+j], slashed[i+3+j:]
		} else {
			volume, rest = slashed, ""
		}
	}
	name = strings.ReplaceAll(name, `\`, "/")
	if strings.HasPrefix(name, "/") {
		rest = ""
	}
	return strings.ReplaceAll(volume+path.Join("/", rest, name), "/", `\`)
}

// spelled returns a path in the one spelling by which it is compared.
func spelled(name string) string {
	if !windows(name) {
		return path.Clean(name)
	}
	return strings.ToLower(resolveWindows(name, ""))
}
