package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/client"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// maxImport bounds a file that is read, in bytes. The server's limits are lower and their
// messages say what to do.
const maxImport = 256 << 20

func (a *app) exportCommand() *cobra.Command {
	format, path := oneOf{value: "md", values: []string{"md", "html", "jsonl", "pi"}}, ""
	cmd := &cobra.Command{
		Use: "export ID", Short: "Write a session as Markdown, HTML, JSON lines or pi's session file", Args: exactly("ID"),
		RunE: a.withClient(func(ctx context.Context, c *client.Client, args []string) error {
			data, err := c.Export(ctx, args[0], format.value)
			switch {
			case err != nil:
				return err
			case path == "":
				a.out.printf("%s", a.out.text(string(data)))
				return nil
			}
			return os.WriteFile(path, data, 0o600)
		}),
	}
	cmd.Flags().Var(&format, "format", "format of the file")
	cmd.Flags().StringVarP(&path, "output", "o", "", "file to write (default: standard output)")
	return cmd
}

func (a *app) importCommand() *cobra.Command {
	var cwd, name string
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Make a session of pi's session file, or of - for standard input, and print its id", Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := a.read(args[0])
			if err != nil {
				return err
			}
			if cwd != "" {
				if cwd, err = filepath.Abs(cwd); err != nil {
					return fmt.Errorf("working directory: %w", err)
				}
			}
			return a.withClient(func(ctx context.Context, c *client.Client, _ []string) error {
				return a.imports(ctx, c, &roostv1.ImportSessionRequest{Format: "pi", Data: data, Cwd: cwd, Name: name})
			})(cmd, args)
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", "", "working directory of the session (default: the one in the file)")
	cmd.Flags().StringVar(&name, "name", "", "name of the session (default: the one in the file)")
	return cmd
}

func (a *app) read(path string) ([]byte, error) {
	in := a.stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, maxImport))
}

func (a *app) imports(ctx context.Context, c *client.Client, req *roostv1.ImportSessionRequest) error {
	res, err := c.Import(ctx, req)
	if err != nil {
		return err
	}
	for _, what := range slices.Sorted(maps.Keys(res.Lost)) {
		a.err.printf("%s\n", a.err.style(yellow, fmt.Sprintf("not taken over: %s, %d times", a.err.line(what, shownName), res.Lost[what])))
	}
	a.out.printf("%s\n", a.out.text(res.Session.Id))
	return nil
}
