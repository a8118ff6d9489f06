// Package builtin puts together the tools that every session has: read, bash, edit, write,
// grep, find and ls.
package builtin

import (
	"slices"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/fstool"
	"github.com/roost-dev/roost/internal/tool/searchtool"
	"github.com/roost-dev/roost/internal/tool/shelltool"
)

// All returns the tools. Programs that bash runs get this process's environment without the
// variables named in hide, which hold keys of the server. Edits queue up by file among the
// tools of one call, so a process calls it once.
func All(hide ...string) []tool.Tool {
	return With(shelltool.Options{Env: shelltool.Environ(hide...)})
}

// With is All with options of bash.
func With(bash shelltool.Options) []tool.Tool {
	return slices.Concat(fstool.New(), []tool.Tool{shelltool.NewWith(bash)}, searchtool.New())
}
