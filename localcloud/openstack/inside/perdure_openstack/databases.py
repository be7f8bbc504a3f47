"""Create databases, or replace them by empty ones: `python -m perdure_openstack.databases NAME...`."""

from __future__ import annotations

import os
import sys

import pymysql


def main() -> None:
    connection = pymysql.connect(unix_socket=os.environ["PERDURE_OPENSTACK_DATABASE"], user="root")
    with connection, connection.cursor() as cursor:
        for name in sys.argv[1:]:
            cursor.execute(f"CREATE OR REPLACE DATABASE `{name}` CHARACTER SET utf8mb3")


if __name__ == "__main__":
    main()
