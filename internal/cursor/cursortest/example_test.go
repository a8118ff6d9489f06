package cursortest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/roost-dev/roost/internal/cursor/cursortest"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// A client whose network repeats and delays appends, and whose user says no to every mode switch.
func Example() {
	c := cursortest.New(cursortest.Options{
		BaseURL: "http://127.0.0.1:8080",
		Token:   "token",
		Dir:     "/home/dev/project",
		Faults: cursortest.Faults{
			Seed:      1,
			Duplicate: cursortest.Chance(0.1),
			Reorder:   cursortest.Jitter(20 * time.Millisecond),
		},
		Execs: map[string]cursortest.Handler{
			"read_args":         cursortest.CloseFirst(cursortest.DefaultHandler("read_args")),
			"shell_stream_args": cursortest.Throws("no shell here"),
		},
		Answer: func(_ context.Context, q *agentv1.InteractionQuery) *agentv1.InteractionResponse {
			if q.GetSwitchModeRequestQuery() == nil {
				return cursortest.DefaultAnswer(q)
			}
			return &agentv1.InteractionResponse{Result: &agentv1.InteractionResponse_SwitchModeRequestResponse{
				SwitchModeRequestResponse: &agentv1.SwitchModeRequestResponse{Result: &agentv1.SwitchModeRequestResponse_Rejected_{
					Rejected: &agentv1.SwitchModeRequestResponse_Rejected{Reason: "stay"},
				}},
			}}
		},
	})
	defer c.Close()
	res, err := c.Run(context.Background(), cursortest.Prompt{Text: "hello"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Text, len(res.Attempts), res.Violations, c.Ran())
}
