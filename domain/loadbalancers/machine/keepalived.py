"""keepalived's configuration, which decides which machine holds the virtual address.

A machine's priority is 50, plus 100 while its Envoy runs, plus 10 while its agent is ready *and* the machine has the
LoadBalancer's revision. So machines of a new set win over machines of the old set while Envoy runs on both, and a
machine without Envoy never wins over one with Envoy. All LoadBalancers use the same router id. LoadBalancers on one
network are separated only by their security groups, each of which accepts VRRP only from its own members.
"""

from __future__ import annotations

HEALTH_SCRIPT_PATH = "/var/lib/yawol/check_yawollet_health.sh"

# keepalived runs this script every two seconds; any answer other than 200 counts as a failure.
HEALTH_SCRIPT = """#!/bin/sh
# Whether this machine's agent is ready to answer for the virtual address.
wget -T 2 -S -O /dev/null http://127.0.0.1:8080/readyz 2>&1 | grep -q 'HTTP/[0-9.]* 200'
"""

_CONFIGURATION = """global_defs {
  router_id envoy
  max_auto_priority -1
  vrrp_garp_master_repeat 5
  vrrp_garp_interval 1
  vrrp_garp_lower_prio_repeat 1
  vrrp_garp_master_refresh 300
  vrrp_garp_master_refresh_repeat 1
  vrrp_higher_prio_send_advert true
  enable_script_security
}

vrrp_track_process envoy {
  process envoy
  weight 100
}

vrrp_script yawollethealth {
  script "%(script)s"
  interval 2
  timeout 10
  init_fail
  rise 1
  fall 3
  weight 10
}

vrrp_instance ENVOY {
  state BACKUP
  interface eth0
  virtual_router_id 100
  priority 50
  advert_int 4
  authentication {
    auth_type PASS
    auth_pass yawol
  }
  virtual_ipaddress {
    %(address)s
  }
  track_process {
    envoy
  }
  track_script {
    yawollethealth
  }
}
"""


def keepalived_conf(virtual_address: str) -> str:
    return _CONFIGURATION % {"script": HEALTH_SCRIPT_PATH, "address": virtual_address}
