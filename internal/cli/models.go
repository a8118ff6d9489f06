package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/piwire"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

func (a *app) modelsCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use: "models", Short: "List the models on offer", Args: cobra.NoArgs,
		RunE: a.withClient(func(ctx context.Context, c *client.Client, _ []string) error { return a.models(ctx, c, asJSON) }),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one roost.v1.Model a line")
	return cmd
}

func (a *app) models(ctx context.Context, c *client.Client, asJSON bool) error {
	models, err := c.Models(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		for _, m := range models {
			a.out.printf("%s\n", message(m))
		}
		return nil
	}
	t := a.table("MODEL", "KEY", "CONTEXT", "OUTPUT", "$/M IN", "$/M OUT", "THINKING")
	for _, m := range models {
		t.row(m.Model, key(m), fmt.Sprint(m.ContextWindow), fmt.Sprint(m.MaxOutput), price(m.InputCost), price(m.OutputCost), strings.Join(m.ThinkingLevels, ","))
	}
	return t.w.Flush()
}

func key(m *roostv1.Model) string {
	if m.Authenticated {
		return "yes"
	}
	return "no"
}

func price(v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}

func (a *app) schemaCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "schema", Short: "Print the JSON Schema of a protocol", Args: cobra.NoArgs, RunE: help}
	cmd.AddCommand(&cobra.Command{
		Use: "pi", Short: "Print the JSON Schema of pi's protocol", Args: cobra.NoArgs,
		Run: func(*cobra.Command, []string) {
			a.out.printf("%s\n", strings.TrimRight(string(piwire.JSONSchema()), "\n"))
		},
	})
	return cmd
}
