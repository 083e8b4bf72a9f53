package samplelog

import "strconv"

// Tenants returns the logs of four tenants, 26,600 executions and 357,400 events: of a
// bank, a maker of cars, a software company and a town.
func Tenants(seed uint64) []Shape {
	return []Shape{
		{
			Tenant: "loans", Executions: 13_000, Events: 262_000, Seed: seed,
			ID:    func(n int) string { return strconv.Itoa(173_688 + 3*n) },
			Kinds: []string{"A_SUBMITTED", "A_PREACCEPTED", "W_Completing application", "O_SELECTED", "O_SENT_BACK", "A_DECLINED"},
		},
		{
			Tenant: "incidents", Executions: 7_500, Events: 65_500, Seed: seed, Seconds: true,
			ID:    func(n int) string { return "1-" + strconv.Itoa(364_285_768+n*n%9_999_991*8) },
			Kinds: []string{"Accepted", "Queued", "Completed", "Unmatched"},
		},
		{
			Tenant: "helpdesk", Executions: 4_600, Events: 21_300, Seed: seed, Seconds: true,
			ID:    func(n int) string { return "Case " + strconv.Itoa(n+1) },
			Kinds: []string{"Assign seriousness", "Take in charge ticket", "Wait", "Require upgrade", "Resolve ticket", "Closed"},
		},
		{
			Tenant: "permits", Executions: 1_500, Events: 8_600, Seed: seed,
			ID:    func(n int) string { return "case-" + strconv.Itoa(n*37%10_007) },
			Kinds: []string{"Confirmation of receipt", "T02 Check confirmation of receipt", "T06 Determine necessity of stop advice", "T10 Determine necessity to stop indication"},
		},
	}
}
