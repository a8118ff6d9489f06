package cli

import (
	"github.com/spf13/cobra"
)

// trustCommand lets what a project wants to run count. It asks no server: the decision is
// this machine's user's.
func (a *app) trustCommand() *cobra.Command {
	return &cobra.Command{
		Use: "trust [DIR]", Short: "Let the MCP servers of a project's .mcp.json run, as they are now", Args: cobra.MaximumNArgs(1),
		Long: `A project's .mcp.json names programs to run. They count only after you have trusted them, and only
as long as the file stays byte for byte as it is.`,
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			servers, err := a.server.Trust(a.dataDir(), dir)
			if err != nil {
				return err
			}
			for _, s := range servers {
				a.out.printf("trusted %s\n", a.out.line(s, shownName))
			}
			return nil
		},
	}
}
