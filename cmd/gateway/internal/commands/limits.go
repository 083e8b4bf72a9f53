package commands

import (
	"context"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/loomgate/loomgate/cmd/gateway/internal/config"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// A limit is one of a tenant's, by its flag.
type limit struct {
	flag, usage string
	of          func(*pb.TenantLimits) **int64
	bytes       bool
}

var tenantLimits = []limit{
	{"requests-per-second", "calls a second, and once more as many to fences, timers and leases", func(l *pb.TenantLimits) **int64 { return &l.RequestsPerSecond }, false},
	{"bytes-per-second", "bytes that are appended and read a second, such as 8MiB", func(l *pb.TenantLimits) **int64 { return &l.BytesPerSecond }, true},
	{"events-per-second", "events that are appended a second", func(l *pb.TenantLimits) **int64 { return &l.EventsPerSecond }, false},
	{"in-flight", "calls under way, and once more as many to fences, timers and leases", func(l *pb.TenantLimits) **int64 { return &l.InFlight }, false},
	{"executions", "executions that are stored", func(l *pb.TenantLimits) **int64 { return &l.Executions }, false},
}

func newTenantLimits() *cobra.Command {
	cmd := &cobra.Command{
		Use: "limits NAME", Short: "Show or change what a tenant may use of each gateway", Args: arguments(cobra.ExactArgs(1)),
		Long: `Limits shows what a tenant may use of the gateway that answers, where each limit comes
from, and what the tenant uses of it. With flags, it first changes limits that the tenant
has of its own, on all gateways: a number, or unlimited; 0 refuses everything of the
kind. What has no limit of its own has the one that a gateway is configured with.`,
		Example: `  gateway tenants limits acme
  gateway tenants limits acme --requests-per-second 500 --bytes-per-second 8MiB
  gateway tenants limits acme --executions unlimited
  gateway tenants limits acme --reset`,
		RunE: func(cmd *cobra.Command, args []string) error {
			set, given, err := limitsOf(cmd)
			if err != nil {
				return err
			}
			reset, _ := cmd.Flags().GetBool("reset")
			return withAdmin(cmd, func(ctx context.Context, admin pb.AdminServiceClient) error {
				if given || reset {
					if _, err := admin.SetTenantLimits(ctx, &pb.SetTenantLimitsRequest{Name: args[0], Reset_: reset, Limits: set}); err != nil {
						return err
					}
				}
				return showLimits(ctx, cmd, admin, args[0])
			})
		},
	}
	for _, l := range tenantLimits {
		cmd.Flags().String(l.flag, "", l.usage)
	}
	cmd.Flags().Bool("reset", false, "drop all limits that the tenant has of its own, before others are set")
	addOutput(cmd)
	return cmd
}

// limitsOf returns what the flags say, and whether they say anything.
func limitsOf(cmd *cobra.Command) (set *pb.TenantLimits, given bool, err error) {
	set = &pb.TenantLimits{}
	for _, l := range tenantLimits {
		if !cmd.Flags().Changed(l.flag) {
			continue
		}
		text, _ := cmd.Flags().GetString(l.flag)
		n, ok := l.parse(text)
		if !ok {
			return nil, false, &usageError{fmt.Errorf("--%s is no whole number from 0, and not unlimited", l.flag)}
		}
		*l.of(set), given = &n, true
	}
	return set, given, nil
}

func (l limit) parse(text string) (int64, bool) {
	if l.bytes {
		n, ok := config.ParseByteLimit(text)
		return int64(n), ok
	}
	n, ok := config.ParseLimit(text)
	return int64(n), ok
}

func showLimits(ctx context.Context, cmd *cobra.Command, admin pb.AdminServiceClient, name string) error {
	res, err := admin.GetTenantLimits(ctx, &pb.GetTenantLimitsRequest{Name: name})
	if err != nil {
		return err
	}
	out, err := newOutput(cmd, "limit", "value", "from", "used", "as of")
	if err != nil {
		return err
	}
	for _, l := range tenantLimits {
		var value any = "unlimited"
		if n := *l.of(res.GetEffective()); n != nil && *n != math.MaxInt64 {
			value = *n
		}
		from := "configuration"
		if *l.of(res.GetOwn()) != nil {
			from = "tenant"
		}
		var used any = ""
		asOf := ""
		switch {
		case l.flag == "in-flight":
			used = res.GetInFlight()
		case l.flag == "executions" && res.GetCountedAt() != nil:
			used, asOf = res.GetExecutions(), moment(res.GetCountedAt())
		}
		if err := out.row(l.flag, value, from, used, asOf); err != nil {
			return err
		}
	}
	return out.end()
}
