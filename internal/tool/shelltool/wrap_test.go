package shelltool_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/shelltool"
)

func TestWrap(t *testing.T) {
	s := newShell(t)
	var got tool.Call
	s.bash = shelltool.NewWith(shelltool.Options{
		Env: shelltool.Environ(),
		Wrap: func(call tool.Call, argv []string) ([]string, []string, error) {
			got = call
			return slices.Concat([]string{argv[0], "-c", `echo wrapped; exec "$@"`, "-"}, argv), []string{"ROOST_TEST=from the wrapper"}, nil
		},
	})
	res := s.command(t, "echo $ROOST_TEST")
	if res.IsError || strings.TrimSpace(res.Text) != "wrapped\nfrom the wrapper" {
		t.Errorf("%+v", res)
	}
	if got.Dir != s.dir || got.OutputDir != s.out {
		t.Errorf("the wrapper was given %+v", got)
	}
}

func TestWrapFails(t *testing.T) {
	s := newShell(t)
	s.bash = shelltool.NewWith(shelltool.Options{
		Env:  shelltool.Environ(),
		Wrap: func(tool.Call, []string) ([]string, []string, error) { return nil, nil, errors.New("no sandbox here") },
	})
	if res := s.command(t, "echo ran"); !res.IsError || res.Text != "bash: no sandbox here" {
		t.Errorf("%+v", res)
	}
}
